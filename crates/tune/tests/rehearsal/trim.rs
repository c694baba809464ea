//! `trim`: options whose code does not run, on the stand-in kernel.

use crate::support::TestBench;
use kerntune_kernel::{find, BaseConfig, BuildRequest, KernelSource};
use kerntune_tune::trim::{trim, KeepReason, TrimRequest, TrimResult};
use kerntune_tune::{Error, Session};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Files of four options: unused, linked but never called, used, and for errors only.
const OPTIONS: &str = "obj-$(CONFIG_LEGACY) += net/legacy.o\nobj-$(CONFIG_SPARE) += lib/spare.o\n\
    obj-$(CONFIG_LIST) += fs/dir.o\nobj-$(CONFIG_PANIC_LATE) += kernel/late.o\n\nall := $(objects) $(obj-y)";

/// Returns the request of the stand-in kernel with these options on.
fn request(bench: &TestBench) -> BuildRequest {
    let source = bench.path("source");
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rehearsal/kernel");
    assert!(Command::new("cp").arg("-r").arg(stand_in).arg(&source).status().unwrap().success());
    let edit = |file: &str, before: &str, after: &str| {
        let path = source.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(before), "{file}: {before}");
        fs::write(path, text.replacen(before, after, 1)).unwrap();
    };
    edit("Makefile", " fs/dir.o", "");
    edit("Makefile", "all := $(objects)", OPTIONS);
    edit("fs/dir.c", "long do_list(", "void spare(void);\n\nlong do_list(");
    edit("fs/dir.c", "\treturn (long)count;", "\tif (seed == count)\n\t\tspare();\n\treturn (long)count;");
    for (file, function) in [("net/legacy.c", "legacy"), ("lib/spare.c", "spare"), ("kernel/late.c", "late")]
    {
        let text = format!(
            "#include <linux/kernel.h>\n\nvoid {function}(void);\nvoid {function}(void)\n{{\n\tasm volatile(\"nop\\n nop\\n nop\");\n}}\n"
        );
        fs::write(source.join(file), text).unwrap();
    }
    let config = bench.path("config");
    fs::write(&config, "CONFIG_LEGACY=y\nCONFIG_SPARE=y\nCONFIG_LIST=y\nCONFIG_PANIC_LATE=y\n").unwrap();
    let mut request = BuildRequest::new(KernelSource::Directory(source), "base");
    request.base = BaseConfig::File(config);
    request
}

fn trimmed(
    bench: &TestBench,
    session: &Session,
    build: &BuildRequest,
    keep: &[&str],
    plan_only: bool,
) -> Result<TrimResult, Error> {
    let keep: Vec<String> = keep.iter().map(ToString::to_string).collect();
    let workloads = std::slice::from_ref(&bench.workload);
    let model = &bench.model;
    let request = TrimRequest {
        build,
        workloads,
        keep: &keep,
        min_percent: 0.0,
        no_modules: false,
        model,
        runs: 3,
        budget: None,
        plan_only,
    };
    trim(session, &request, &|_| {})
}

#[test]
fn what_never_runs_goes_and_what_the_kernel_is_linked_with_comes_back() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let build = request(&bench);

    let plan = trimmed(&bench, &session, &build, &[], true).unwrap();
    let off = |found: &TrimResult| found.off.iter().map(|off| off.option.clone()).collect::<Vec<_>>();
    assert_eq!(
        (off(&plan), plan.trimmed.is_some(), plan.paths.len()),
        (vec!["LEGACY".into(), "SPARE".into()], false, 0)
    );

    let found = trimmed(&bench, &session, &build, &[], false).unwrap();
    assert_eq!(off(&found), ["LEGACY"]);
    let stays = |option: &str| &found.stay.iter().find(|stays| stays.option == option).unwrap().because;
    assert_eq!(stays("SPARE"), &KeepReason::Fails);
    assert!(
        matches!(stays("LIST"), KeepReason::Ran { file, .. } if file == "fs/dir.c"),
        "{:?}",
        stays("LIST")
    );
    assert!(
        matches!(stays("PANIC_LATE"), KeepReason::Asked { why } if why == "for when something goes wrong")
    );

    let trimmed_size = found.trimmed.as_ref().unwrap();
    let has = |id: &str, name: &str| {
        let symbols = find(&work, id).unwrap().symbols().unwrap();
        symbols.functions().iter().any(|function| function.name == name)
    };
    assert!(
        has(&found.base.id, "legacy") && !has(&trimmed_size.id, "legacy") && has(&trimmed_size.id, "spare")
    );
    assert!(
        trimmed_size.text_bytes < found.base.text_bytes && trimmed_size.functions + 1 == found.base.functions
    );
    assert_eq!(found.base.text_bytes - trimmed_size.text_bytes, found.off[0].text_bytes);
    assert_eq!((found.gone.len(), found.gone[0].directory.as_str()), (1, "net"));
    assert!(!found.paths[0].longer && found.paths[0].base == found.paths[0].trimmed, "{:?}", found.paths);

    // A second trim finds the results of the first; options to keep stay.
    let again = trimmed(&bench, &session, &build, &[], false).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&found).unwrap());
    let nothing = trimmed(&bench, &session, &build, &["CONFIG_LEG*", "SPARE"], false).unwrap_err();
    assert!(
        matches!(&nothing, Error::NothingToTrim { why, .. } if why.contains("is to be kept")),
        "{nothing}"
    );
}
