//! Tests of the function table on a small ELF file that the test assembles and links. It has one
//! case of each kind from a real vmlinux (GCC 12, Linux 6.12).

use super::*;
use proptest::prelude::*;
use std::fs;
use std::process::Command;
use std::sync::OnceLock;

/// Like `arch/x86/entry/entry_64.S` and the linker script.
const ENTRY: &str = r#"
    .file "entry_64.S"
    .text
    .globl _stext, __entry_text_start, __entry_text_end
_stext:
__entry_text_start:
    .globl entry_SYSCALL_64, entry_SYSCALL_64_after_hwframe
entry_SYSCALL_64:
    nop
    nop
entry_SYSCALL_64_after_hwframe:
    nop
.Llocal:
    ret
    .size entry_SYSCALL_64, .-entry_SYSCALL_64
    .balign 16, 0xcc
    .globl swapgs_restore_regs_and_return_to_usermode
common_interrupt_return:
swapgs_restore_regs_and_return_to_usermode:
    nop
    iretq
    .size common_interrupt_return, .-common_interrupt_return
    .balign 16, 0xcc
unsized_stub:
    nop
    nop
    nop
__entry_text_end:
    .balign 16, 0xcc
    .globl memcpy, __memcpy
    .type memcpy, @function
    .type __memcpy, @function
__memcpy:
memcpy:
    rep movsb
    ret
    .size memcpy, .-memcpy
    .size __memcpy, .-__memcpy
__pfx_padded:
    nop
    .balign 16, 0xcc
    .type padded, @function
padded:
    ret
    .size padded, .-padded
"#;

/// Source with a static function that another file has too, and a global one, each with a cold
/// part.
fn c_file(file: &str, global: &str) -> String {
    let function = |name: &str, section: &str, bytes: usize| {
        format!(
            ".section {section},\"ax\",@progbits\n.type {name}, @function\n{name}:\n.fill {bytes}, 1, 0x90\n\
             .size {name}, .-{name}\n.balign 16, 0xcc\n"
        )
    };
    let mut text = format!(".file \"{file}\"\n.globl {global}\n");
    text += &function("s_show", ".text", 5);
    text += &function(global, ".text", 7);
    text += &function("helper.part.0", ".text", 3);
    text += &function("s_show.cold", ".text.unlikely", 2);
    text += &function(&format!("{global}.cold"), ".text.unlikely", 2);
    text += &function("helper.part.0.cold.4", ".text.unlikely", 2);
    text
}

fn fixture() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("entry.s", ENTRY.to_string()),
            ("a.s", c_file("tcp.c", "tcp_sendmsg")),
            ("b.s", c_file("udp.c", "udp_sendmsg")),
        ];
        let mut gcc = Command::new("gcc");
        gcc.current_dir(dir.path()).args(["-nostdlib", "-static", "-no-pie", "-o", "vmlinux"]);
        gcc.args(["-Wl,-Ttext=0x81000000", "-Wl,-e,0x81000000", "-Wl,--build-id=none"]);
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
            gcc.arg(name);
        }
        let out = gcc.output().expect("gcc is needed to build kernels and to test this");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        fs::read(dir.path().join("vmlinux")).unwrap()
    })
}

fn table() -> Symbols {
    Symbols::parse(fixture(), Path::new("vmlinux")).unwrap()
}

fn named<'a>(symbols: &'a Symbols, name: &str) -> Vec<&'a KernelFunction> {
    symbols.functions().iter().filter(|f| f.name == name).collect()
}

#[test]
fn assembly_entries_are_functions_and_their_inner_labels_are_not() {
    let symbols = table();
    let entry = named(&symbols, "entry_SYSCALL_64")[0];
    assert_eq!((entry.size, entry.is_code_label, entry.aliases.len()), (4, true, 0));
    assert_eq!(entry.file.as_deref(), None, "it is global");
    assert!(named(&symbols, "entry_SYSCALL_64_after_hwframe").is_empty());
    assert_eq!(symbols.address_of("entry_SYSCALL_64_after_hwframe"), Some(entry.address + 2));
    assert_eq!(symbols.address_of("_stext"), Some(entry.address));

    let back = named(&symbols, "common_interrupt_return")[0];
    assert_eq!(back.aliases, ["swapgs_restore_regs_and_return_to_usermode"]);
    assert_eq!(back.file.as_deref(), Some("entry_64.S"));
    assert_eq!(named(&symbols, "unsized_stub")[0].size, 3, "up to the mark behind it");
}

#[test]
fn aliases_are_merged_and_marks_and_preambles_left_out() {
    let symbols = table();
    let copy = named(&symbols, "memcpy")[0];
    assert_eq!((copy.aliases.as_slice(), copy.is_code_label), (&["__memcpy".to_string()][..], false));
    assert_eq!(symbols.address_of("__memcpy"), Some(copy.address));
    for absent in ["_stext", "__entry_text_start", "__entry_text_end", "__pfx_padded", ".Llocal"] {
        assert!(named(&symbols, absent).is_empty(), "{absent}");
    }
    assert_eq!(named(&symbols, "padded").len(), 1);
}

#[test]
fn cold_parts_belong_to_the_function_of_their_own_file() {
    let symbols = table();
    let functions = symbols.functions();
    for (part, file) in
        [("s_show.cold", "tcp.c"), ("s_show.cold", "udp.c"), ("helper.part.0.cold.4", "udp.c")]
    {
        let part = functions.iter().find(|f| f.name == part && f.file.as_deref() == Some(file)).unwrap();
        let whole = &functions[part.part_of.unwrap()];
        assert_eq!(Some(whole.name.as_str()), cold_part_of(&part.name));
        assert_eq!(whole.file.as_deref(), Some(file));
        assert_eq!(whole.part_of, None);
    }
    let cold = functions.iter().position(|f| f.name == "tcp_sendmsg.cold").unwrap();
    let whole = &functions[symbols.whole(cold)];
    assert_eq!((whole.name.as_str(), whole.file.as_deref()), ("tcp_sendmsg", Some("tcp.c")));
    assert!(named(&symbols, "helper.part.0").iter().all(|f| f.part_of.is_none()));
}

#[test]
fn lookup_finds_the_function_around_an_address() {
    let symbols = table();
    let functions = symbols.functions();
    assert!(functions.windows(2).all(|w| w[0].address < w[1].address));
    for (index, function) in functions.iter().enumerate() {
        assert_eq!(symbols.lookup(function.address), Some(index));
        assert_eq!(symbols.lookup(function.end() - 1), Some(index));
    }
    let send = named(&symbols, "udp_sendmsg")[0];
    assert_eq!(symbols.lookup(send.end()), None, "padding");
    assert_eq!(symbols.lookup(0), None);
    assert_eq!(symbols.lookup(u64::MAX), None);
    // entry 4, return 3, stub 3, memcpy 3, padded 1; per file 5 + 7 + 3 and three parts of 2.
    assert_eq!(symbols.text_bytes(), 14 + 2 * (15 + 6));
}

#[test]
fn an_entry_inside_of_a_function_is_found_and_so_is_what_follows_it() {
    let raw = |name: &str, address, size| RawSymbol {
        name: name.into(),
        address,
        size,
        section: 1,
        typed: true,
        binding: 0,
        scope: None,
    };
    let text = Section {
        index: 1,
        name: ".text".into(),
        start: 0,
        end: 200,
        offset: 0,
        data: &[],
        loaded: true,
        code: true,
    };
    let sections = HashMap::from([(1, text)]);
    let symbols = Symbols::from_raw(
        vec![raw("outer", 0, 100), raw("inner", 10, 10), raw("next", 120, 5)],
        &sections,
        |_, _| None,
    );
    let name = |address| symbols.lookup(address).map(|i| symbols.functions()[i].name.as_str());
    assert_eq!(
        [name(5), name(15), name(50), name(110), name(120)],
        [Some("outer"), Some("inner"), Some("outer"), None, Some("next")]
    );
    assert_eq!(symbols.text_bytes(), 105);
}

#[test]
fn what_is_no_kernel_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, "not an ELF file at all").unwrap();
    let error = Symbols::load(&path).unwrap_err().to_string();
    assert!(error.contains("/x: "), "{error}");
    fs::write(&path, fixture()).unwrap();
    assert!(Command::new("strip").arg(&path).status().unwrap().success());
    let error = Symbols::load(&path).unwrap_err().to_string();
    assert!(error.contains("stripped"), "{error}");
}

proptest! {
    #[test]
    fn damaged_files_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        keep in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = fixture().to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(keep.index(bytes.len()));
        }
        if let Ok(symbols) = Symbols::parse(bytes.as_slice(), Path::new("damaged")) {
            for function in symbols.functions() {
                symbols.lookup(function.address);
                symbols.lookup(function.end());
            }
        }
    }
}

#[test]
fn a_hidden_function_that_the_linker_made_local_is_of_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let run = |command: &str| {
        let done = Command::new("sh").args(["-ec", command]).current_dir(dir.path()).status();
        assert!(done.unwrap().success(), "{command}");
    };
    let of = |name: &str, hidden: &str| {
        format!(
            "static __attribute__((noinline, used)) int only_{name}(void) {{ return {}; }}\n\
             __attribute__((visibility(\"hidden\"))) int {hidden}(void) {{ return only_{name}(); }}\n",
            name.len()
        )
    };
    fs::write(dir.path().join("a.c"), of("a", "first")).unwrap();
    fs::write(dir.path().join("b.c"), of("bb", "second")).unwrap();
    // Linked like the kernel: all objects into one, and that once more.
    run("gcc -O1 -c a.c b.c; ld.lld-19 -r a.o b.o -o all.o; ld.lld-19 -e first all.o -o x");
    let symbols = Symbols::load(&dir.path().join("x")).unwrap();
    let file = |name: &str| {
        let function = symbols.functions().iter().find(|function| function.name == name).unwrap();
        function.file.clone()
    };
    let files = ["only_a", "only_bb", "first", "second"].map(file);
    assert_eq!(files, [Some("a.c".into()), Some("b.c".into()), None, None]);
}
