// What is wider than its column scrolls: the keyboard reaches it, and a screen reader says what it is.
const names = { TABLE: "Table", CODE: "Code" };
function reachable() {
  for (const element of document.querySelectorAll(
    ".md-typeset :is(.formula, p, li, td, dd, .md-typeset__scrollwrap, pre > code)",
  )) {
    const scrolls = element.scrollWidth > element.clientWidth && getComputedStyle(element).overflowX === "auto";
    if (scrolls && !element.hasAttribute("tabindex")) {
      const shown = element.querySelector("table") ?? element;
      element.tabIndex = 0;
      if (element.matches("div, code")) {
        element.setAttribute("role", "group");
        element.setAttribute("aria-label", names[shown.tagName] ?? "Formula");
      }
      element.dataset.scrolls = "";
    } else if (!scrolls && "scrolls" in element.dataset) {
      for (const name of ["tabindex", "role", "aria-label", "data-scrolls"]) element.removeAttribute(name);
    }
  }
}
addEventListener("load", () => requestAnimationFrame(reachable));
addEventListener("resize", reachable);

// The theme puts the button that copies a block into a landmark, one a block, all without a name.
function plain() {
  for (const bar of document.querySelectorAll("nav.md-code__nav:not([role])")) bar.setAttribute("role", "none");
}
new MutationObserver(plain).observe(document.documentElement, { childList: true, subtree: true });
