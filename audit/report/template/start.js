
document.querySelectorAll("table[data-sorted]").forEach(sortable);
document.querySelectorAll("table[data-filtered]").forEach(filterable);
tips();
unpacked().then((data) => {
  records(data);
  timelines(data);
  document.getElementById("how").hidden = false;
  document.documentElement.dataset.ready = "yes";
}, () => {
  said.textContent = "This browser is too old for the records and timelines of this page.";
});
