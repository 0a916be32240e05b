// The pages follow the reader's light or dark setting, from a server and from a disk, also when the setting changes.
const dark = matchMedia("(prefers-color-scheme: dark)")
const follow = () => document.body.setAttribute("data-md-color-scheme", dark.matches ? "slate" : "default")
follow()
dark.addEventListener("change", follow)
