const config = JSON.parse(document.getElementById("chart-config").textContent);
for (const figure of document.querySelectorAll("figure.chart")) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const options = {
    mode: "vega-lite",
    renderer: "svg",
    config,
    actions: false,
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
    ast: true, // expressions are interpreted: the page's policy allows no eval
  };
  vegaEmbed(figure.querySelector(".plot"), spec, options).then(
    () => figure.querySelector("details").removeAttribute("open"),
    (error) => console.error(error),
  );
}
