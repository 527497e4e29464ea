"""Where blocks are mapped: in this process, over threads; over the workers of a cluster; or on an accelerator."""
