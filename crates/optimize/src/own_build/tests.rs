use super::*;
use crate::clang_autofdo::test_program::{Fixture, BASE_FLAGS};
use std::fs;

#[test]
fn an_image_with_hot_functions_in_front_is_told_from_one_without() {
    let fixture = Fixture::new(BASE_FLAGS);
    let recording = fixture.recording();
    let base = Symbols::load(&fixture.base.vmlinux()).unwrap();
    let order: Vec<String> = (0..40).map(|i| format!("ran{i}")).collect();
    let own = OwnBuild::examine(&recording, Some(&order), "vmlinux", &base);
    assert_eq!((own.hot, own.found, own.found_share), (40, 40, 1.0), "{own}");
    assert_eq!(own.in_front[0], own.in_front[1]);
    assert!(own.verdict().unwrap_err().to_string().contains("did not take the profile"));

    let script = kerntune_convert::link_order::script_fragment(order.iter().map(String::as_str));
    let script = format!("SECTIONS {{ .text.first : {{ {script} }} }} INSERT BEFORE .text;\n");
    fs::write(fixture.path("order.ld"), script).unwrap();
    let image = fixture.path("ordered");
    fixture.compile(&["-ffunction-sections"], &image);
    let ordered = Symbols::load(&image).unwrap();
    let own = OwnBuild::examine(&recording, Some(&order), "vmlinux", &ordered);
    assert_eq!(own.in_order.unwrap()[1], 1.0, "{own}");
    assert!(own.in_front[1] > 0.9, "{own}");
    own.verdict().unwrap();
    assert!(own.to_string().contains("100.0 % of neighbors stand"), "{own}");

    let none = OwnBuild::examine(&recording, None, "vmlinux", &Symbols::default());
    assert_eq!((none.found, none.in_order), (0, None));
    assert!(none.verdict().unwrap_err().to_string().contains("stripped"), "{none}");
}

#[test]
fn cold_parts_are_known_by_name() {
    let names = ["a.cold", "b.cold.12", "c.coldest", ".cold", "d"];
    assert_eq!(cold_parts(names.into_iter()), HashSet::from(["a", "b"]));
}
