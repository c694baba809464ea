// Sorting by column and filtering by name; without it the page is whole, in the order it has.
document.querySelectorAll("table.sortable").forEach(function (table) {
  var body = table.tBodies[0];
  var value = function (row, at) {
    var cell = row.cells[at];
    var number = cell.getAttribute("data-v");
    return number === null ? cell.textContent.trim() : number === "" ? -Infinity : Number(number);
  };
  table.querySelectorAll("thead th[data-at]").forEach(function (head) {
    var at = Number(head.getAttribute("data-at"));
    var button = document.createElement("button");
    button.type = "button";
    while (head.firstChild) button.appendChild(head.firstChild);
    head.appendChild(button);
    button.addEventListener("click", function () {
      var descending = head.getAttribute("aria-sort") !== "descending";
      if (!head.hasAttribute("aria-sort") && typeof value(body.rows[0], at) === "string") descending = false;
      table.querySelectorAll("th[aria-sort]").forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      Array.from(body.rows).sort(function (a, b) {
        var x = value(a, at), y = value(b, at);
        var order = typeof x === "number" && typeof y === "number" ? x - y || 0 : String(x).localeCompare(String(y));
        return descending ? -order : order;
      }).forEach(function (row) { body.appendChild(row); });
    });
  });
});
document.querySelectorAll("[data-filter]").forEach(function (place) {
  var table = document.getElementById(place.getAttribute("data-filter"));
  var label = document.createElement("label");
  var input = document.createElement("input");
  input.type = "search";
  label.append("Filter by name", input);
  place.append(label);
  input.addEventListener("input", function () {
    var wanted = input.value.toLowerCase();
    Array.from(table.tBodies[0].rows).forEach(function (row) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    });
  });
});
