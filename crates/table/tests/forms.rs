//! All forms of one document.

use kerntune_table::{render, Columns, DisplayUnit, Document, Style, Table, TextRole};

struct Call {
    name: &'static str,
    calls: Option<u64>,
    ticks: u64,
    by_cpu: Vec<u64>,
}

fn calls() -> Vec<Call> {
    vec![
        Call { name: "tcp|ack", calls: Some(1_234), ticks: 5_678, by_cpu: vec![1_000, 234] },
        Call { name: "a,\"b\"\x1b", calls: None, ticks: 0, by_cpu: Vec::new() },
        Call { name: "last", calls: Some(1), ticks: 1, by_cpu: vec![1] },
    ]
}

fn document(top: Option<usize>) -> Document<'static> {
    let mut columns = Columns::<Call>::new();
    columns
        .add("self", "Time in the function.", |row| row.ticks)
        .head("self")
        .unit(DisplayUnit::Instructions);
    columns.share("%", 5_679, |row| row.ticks);
    columns.add("calls", "Calls made | counted.", |row| row.calls).head("calls").null("-");
    columns.add("hidden", "Never in texts.", |row| row.ticks as f64 / 2.0);
    columns.add("name", "Name.", |row| row.name).head("function");
    let mut cpus = Columns::<u64>::new();
    cpus.add("calls", "Calls there.", |calls| *calls);
    columns.records("cpus", "By CPU.", cpus, |row| row.by_cpu.clone());
    let mut document = Document::new("kerntune-test/1", "Calls.");
    document.field("elapsed_ns", "Whole time.", 5_679_u64);
    document.optional("region", "Region, if any.", None::<String>);
    document.line("Elapsed", "5,679");
    document.table(Table::new("functions", calls(), columns).help("By time.").noun("functions").top(top));
    document.table(Table::new("none", Vec::<u64>::new(), Columns::new()).optional());
    document.painted(TextRole::Faint, "end\n");
    document
}

#[test]
fn text_has_heads_units_and_the_number_of_rows_left_out() {
    assert_eq!(
        render::text(&document(Some(2)), Style::PLAIN).lines().collect::<Vec<_>>(),
        [
            "Elapsed              = 5,679",
            "  self",
            "instr.      %  calls  function",
            " 5,678  99.98  1,234  tcp|ack",
            "     0   0.00      -  a,\"b\"\\u001b",
            "1 more functions (--top)",
            "end",
        ]
    );
}

#[test]
fn json_has_raw_values_and_leaves_out_what_is_optional() {
    let json: serde_json::Value = serde_json::from_str(&render::json(&document(None))).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "schema": "kerntune-test/1",
            "elapsed_ns": 5679,
            "functions": [
                {"self": 5678, "calls": 1234, "hidden": 2839.0, "name": "tcp|ack", "cpus": [{"calls": 1000}, {"calls": 234}]},
                {"self": 0, "calls": null, "hidden": 0.0, "name": "a,\"b\"\u{1b}", "cpus": []},
                {"self": 1, "calls": 1, "hidden": 0.5, "name": "last", "cpus": [{"calls": 1}]},
            ],
        })
    );
}

#[test]
fn csv_quotes_what_would_end_a_value() {
    let document = document(None);
    let tables: Vec<String> = document.tables().map(render::csv).collect();
    assert_eq!(
        tables[0],
        "self,calls,hidden,name,cpus\n\
         5678,1234,2839.0,tcp|ack,\"[{\"\"calls\"\":1000},{\"\"calls\"\":234}]\"\n\
         0,,0.0,\"a,\"\"b\"\"\u{1b}\",[]\n\
         1,1,0.5,last,\"[{\"\"calls\"\":1}]\"\n"
    );
}

#[test]
fn markdown_escapes_what_would_end_a_cell() {
    assert_eq!(
        render::markdown(&document(Some(1))),
        "```\nElapsed              = 5,679\n```\n\n\
         | self instr. | % | calls | function |\n| ---: | ---: | ---: | --- |\n\
         | 5,678 | 99.98 | 1,234 | tcp\\|ack |\n\n2 more functions\n\n```\nend\n```\n\n"
    );
}

#[test]
fn html_escapes_names_and_has_every_row() {
    let page = render::html(&document(Some(1))).into_string();
    assert!(page.contains("a,&quot;b&quot;") && page.contains("<td>99.98</td>"), "{page}");
    assert_eq!(page.matches("<tr>").count(), 4);
    let head = "<th scope=\"col\" class=\"number\" title=\"Time in the function.\">self instr.</th>";
    assert!(page.contains(head), "{page}");
}

#[test]
fn documentation_lists_fields_and_those_of_records() {
    assert_eq!(
        render::docs(&document(None), &[]),
        "## `kerntune-test/1`\n\nCalls.\n\n\
         | field | type | meaning |\n|---|---|---|\n\
         | `schema` | string | `kerntune-test/1`. |\n\
         | `elapsed_ns` | integer | Whole time. |\n\
         | `region` | string, or absent | Region, if any. |\n\
         | `functions` | array | By time. |\n\
         | `none` | array |  |\n\n\
         | field of `functions` | type | meaning |\n|---|---|---|\n\
         | `self` | integer | Time in the function. |\n\
         | `calls` | integer or null | Calls made \\| counted. |\n\
         | `hidden` | number | Never in texts. |\n\
         | `name` | string | Name. |\n\
         | `cpus` | array | By CPU. |\n\n\
         | field of `functions.cpus` | type | meaning |\n|---|---|---|\n\
         | `calls` | integer | Calls there. |\n"
    );
}
