"""Tables, arrays and documents that the commands read and write."""
