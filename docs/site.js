// The theme's own script needs a server. From a disk the reader's dark setting would not count.
if (location.protocol === "file:" && matchMedia("(prefers-color-scheme: dark)").matches) {
  document.body.setAttribute("data-md-color-scheme", "slate")
}
