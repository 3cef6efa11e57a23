// A story's place in a page of the documentation: a button, and once it is pressed the page itself in a frame, with
// the brokers in the reader's browser. Nothing is loaded before. `make docs` puts the page beside the documentation.

for (const place of document.querySelectorAll(".story")) {
  const { story, title } = place.dataset;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "md-button md-button--primary";
  button.textContent = "▶ Play it here";
  button.setAttribute("aria-label", `Play it here: ${title}`);
  button.addEventListener("click", () => {
    if (location.protocol === "file:") {
      button.replaceWith("A browser runs this from a server only: python -m http.server --directory site");
      return;
    }
    const frame = document.createElement("iframe");
    frame.title = `${title}, played by the protocol's own code`;
    frame.src = new URL(`page/index.html?embed#world=story&story=${encodeURIComponent(story)}`, document.baseURI);
    place.replaceChildren(frame);
    place.classList.add("playing");
  });
  place.prepend(button);
}
