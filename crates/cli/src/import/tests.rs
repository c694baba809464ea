use super::*;
use std::fs;

fn words(line: &[&str]) -> Vec<OsString> {
    line.iter().map(OsString::from).collect()
}

#[test]
fn the_format_is_inserted_where_a_file_is_recognized() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("samples");
    fs::write(&data, b"PERFILE2 and more").unwrap();
    let data = data.to_str().unwrap();
    for (typed, now) in [
        (vec!["kerntune", "import", data], vec!["kerntune", "import", "perf", data]),
        (
            vec!["kerntune", "-q", "--dir", "import", "import", data, "--kernel", "k"],
            vec!["kerntune", "-q", "--dir", "import", "import", "perf", data, "--kernel", "k"],
        ),
        (
            vec!["kerntune", "import", "--kernel", "k", data],
            vec!["kerntune", "import", "perf", "--kernel", "k", data],
        ),
        (vec!["kerntune", "import", "gmon", data], vec!["kerntune", "import", "gmon", data]),
        (vec!["kerntune", "import", "--help"], vec!["kerntune", "import", "--help"]),
        (vec!["kerntune", "import", "none"], vec!["kerntune", "import", "none"]),
        (vec!["kerntune", "report", data], vec!["kerntune", "report", data]),
        (vec!["kerntune", "import"], vec!["kerntune", "import"]),
    ] {
        assert_eq!(with_format(words(&typed)), words(&now));
    }
}

#[test]
fn a_file_of_no_format_is_described() {
    let said = |bytes: &[u8]| {
        let input = ImportInput { path: "x".into(), bytes: bytes.into(), names: None };
        choose(&input, ImportFormats::entries()).map(|(entry, _)| entry.entry.name).unwrap_err().message
    };
    assert!(
        said(b"").starts_with("x is of no format that kerntune imports: it is empty. The formats are gmon, ")
    );
    assert!(said(b"\n hello\n").contains("it is text that begins \" hello\""));
    assert!(said(b"\x00\x01\xff").contains("it begins with the bytes 00 01 ff."));
    assert!(said(b"BZh9").contains("it is packed by bzip2; unpack it first"));
    let input = ImportInput { path: "d".into(), names: Some(vec!["a".into()]), ..ImportInput::default() };
    let error = choose(&input, ImportFormats::entries()).map(|_| ()).unwrap_err().message;
    assert!(error.contains("it is a directory with \"a\""), "{error}");
}

#[test]
fn a_certain_answer_wins_and_two_are_ambiguous() {
    static SURE: Entry = kerntune_command::import_entry::<perf::ImportPerfOptions>("sure", 9, |input| {
        if input.bytes == b"sure" {
            Recognition::certain("a sure file")
        } else {
            None
        }
    });
    static LIKELY: Entry = kerntune_command::import_entry::<perf::ImportPerfOptions>("likely", 1, |_| {
        Recognition::likely("text")
    });
    static OTHER: Entry = kerntune_command::import_entry::<perf::ImportPerfOptions>("other", 2, |_| {
        Recognition::likely("words")
    });
    let choose = |bytes: &[u8], all: &[&'static Entry]| {
        let input = ImportInput { path: "x".into(), bytes: bytes.into(), names: None };
        choose(&input, all.iter().copied())
            .map(|(entry, _)| entry.entry.name)
            .map_err(|failure| failure.message)
    };
    let all = [&SURE, &LIKELY, &OTHER];
    assert_eq!(choose(b"sure", &all), Ok("sure"));
    assert_eq!(choose(b"x", &all[..2]), Ok("likely"));
    let error = choose(b"x", &all).unwrap_err();
    assert_eq!(
        error,
        "x may be text (likely) or words (other): name the format, as in `kerntune import likely x`"
    );
}
