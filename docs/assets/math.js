// Formulas: every element that the Markdown extension marked is rendered by KaTeX, which lies beside this file.
document$.subscribe(() => {
  for (const place of document.querySelectorAll(".arithmatex:not([data-rendered])")) {
    const source = place.textContent.trim();
    katex.render(source.slice(2, -2), place, { displayMode: source.startsWith("\\["), throwOnError: false });
    place.dataset.rendered = "yes";
  }
});
