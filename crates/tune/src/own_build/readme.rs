//! Text that lies beside the files: how a build takes them.

use super::lines::{MakeLine, OrderLinker, PROFILES};
use kerntune_guest::Workload;
use kerntune_kernel::{Compiler, Kernel};
use std::fmt::Write as _;

/// Collects the forms of files, and writes the text.
pub(super) struct Readme {
    version: String,
    label: String,
    compiler_version: String,
    workload: String,
    recording: String,
    compiler: Compiler,
    /// Line of the compiler's files; empty without any.
    main: MakeLine,
    order: Option<MakeLine>,
    about: Vec<(&'static str, String)>,
}

impl Readme {
    pub fn new(base: &Kernel, workload: &Workload, recording: &str) -> Self {
        let of = &base.manifest;
        Self {
            version: of.version.clone(),
            label: of.label.clone(),
            compiler_version: of.compiler.version.clone(),
            workload: workload.name.clone(),
            recording: recording.to_string(),
            compiler: of.cc.parse().unwrap_or_default(),
            main: MakeLine::default(),
            order: None,
            about: Vec::new(),
        }
    }

    pub fn afdo(&mut self) {
        self.main = MakeLine::afdo(&format!("{PROFILES}/kernel.afdo"), &self.version, &self.compiler);
        self.about.push(("kernel.afdo", "counts by function and line, for Clang".into()));
    }

    pub fn propeller(&mut self) {
        let (prefix, afdo) = (format!("{PROFILES}/propeller"), format!("{PROFILES}/kernel.afdo"));
        self.main = MakeLine::propeller(&prefix, Some(&afdo), &self.compiler);
        self.about.push(("kernel.afdo", "counts by function and line, for Clang".into()));
        let only_with = "; it holds for builds with kernel.afdo, of this compiler, configuration and source";
        self.about.push(("propeller_cc_profile.txt", format!("order of blocks, for Clang{only_with}")));
        self.about.push(("propeller_ld_profile.txt", "order of functions, for lld".into()));
    }

    pub fn counters(&mut self, kept: u64) {
        self.main = MakeLine::counters(&format!("{PROFILES}/gcda"), &self.compiler);
        let names = "GCC finds the counters of a static function by the name that make gives its source. They are here \
            for a build in the source tree, for one with O= directly below it, and for one with O= elsewhere if the \
            source is where it was. With any other path these functions have no counters, and GCC only warns \
            (-Wmissing-profile)";
        let kept = if kept > 0 {
            format!("; {kept} functions hold for O= below the source alone")
        } else {
            String::new()
        };
        self.about.push(("gcda/", format!("counters of branches, for GCC. {names}{kept}")));
        let objects = "objects with counters. All others are compiled as without a profile";
        self.about.push(("gcda/objects", objects.into()));
    }

    pub fn order(&mut self) {
        let script = format!("{PROFILES}/order.lds");
        self.order = Some(MakeLine::order(&script, OrderLinker::Script, &self.version, &self.compiler));
        self.about.push(("order.lds", "order of functions, for the linker script of GNU ld and lld".into()));
        self.about.push(("order.txt", "the same for lld's --symbol-ordering-file".into()));
    }

    /// Returns the text.
    pub fn text(&self) -> String {
        let Self { version, label, compiler_version, workload, recording, .. } = self;
        let both = match &self.order {
            Some(order) => self.main.clone().and(order.clone()),
            None => self.main.clone(),
        };
        let mut text = format!(
            "# Profiles for Linux {version}\n\nMade by kerntune {} from a recording of workload {workload} on kernel {label} \
             ({compiler_version}). Your build\nneeds these files and nothing of kerntune.\n\n| file | what it is |\n|---|---|\n",
            env!("CARGO_PKG_VERSION")
        );
        for (file, about) in &self.about {
            let _ = writeln!(text, "| `{file}` | {about} |");
        }
        let configure = Self::configure(&both);
        let mut section = |title: &str, lines: &[String]| {
            let _ = writeln!(text, "\n## {title}\n");
            for line in lines {
                let _ =
                    writeln!(text, "{}", if line.is_empty() { String::new() } else { format!("    {line}") });
            }
        };
        let with = |place: &str, lines: Vec<String>| -> Vec<String> {
            lines.iter().map(|line| line.replace(PROFILES, place)).collect()
        };
        // A path of the shell's: out of the quotes and in again.
        let shell = "'\"$profiles\"'";
        let mut lines = vec!["profiles=/path/to/this/directory".to_string()];
        lines.extend(both.prepare.clone());
        lines.extend(configure.clone());
        lines.push(format!("make -j\"$(nproc)\" {}", both.shell()));
        section("make, in the source tree", &with(shell, lines));

        let within = |line: String| format!("    {line}");
        let mut lines = vec!["profiles=$startdir/profiles".to_string(), "prepare() {".into()];
        lines.push(within("cd \"$srcdir/$_srcname\"".into()));
        lines.extend(both.prepare.clone().map(within));
        lines.extend(configure.clone().into_iter().map(within));
        lines.extend(["}".into(), "build() {".into(), within("cd \"$srcdir/$_srcname\"".into())]);
        lines.push(within(format!("make -j\"$(nproc)\" {}", both.shell())));
        lines.push("}".into());
        section("PKGBUILD, with this directory as `profiles` beside it", &with(shell, lines));

        let mut lines = vec!["%build".to_string()];
        lines.extend(both.prepare.clone());
        lines.extend(configure.clone());
        lines.push(format!("make %{{?_smp_mflags}} {}", both.shell()));
        section(
            "RPM spec, with this directory as `profiles` among the sources",
            &with("%{_sourcedir}/profiles", lines),
        );

        let recipe = |line: String| format!("\t{}", line.replace('$', "$$"));
        let mut lines = vec!["override_dh_auto_build:".to_string()];
        lines.extend(both.prepare.clone().map(recipe));
        lines.extend(configure.clone().into_iter().map(recipe));
        lines.push(recipe(format!("$MAKE -j\"$(nproc)\" {}", both.shell())).replace("$$MAKE", "$(MAKE)"));
        section(
            "debian/rules, with this directory as `debian/profiles`",
            &with("$(CURDIR)/debian/profiles", lines),
        );

        if let Some(order) = &self.order {
            let list = format!("{PROFILES}/order.txt");
            let by_lld = MakeLine::order(&list, OrderLinker::Lld, &self.version, &self.compiler);
            for (title, line) in [
                ("The compiler's files alone", &self.main),
                ("The order of functions alone", order),
                ("The same by lld's --symbol-ordering-file", &by_lld),
            ] {
                let mut lines: Vec<String> = line.prepare.iter().cloned().collect();
                lines.extend(Self::configure(line));
                lines.push(format!("make -j\"$(nproc)\" {}", line.shell()));
                section(title, &with(shell, lines));
            }
        }
        let _ = write!(
            text,
            "\n## Check\n\n`vmlinux` at the top of the build directory has its hot functions in front if compiler and linker took the \
             files:\n\n    kerntune profile check {recording} --kernel vmlinux\n"
        );
        text
    }

    /// Returns the commands that set options of the configuration.
    fn configure(line: &MakeLine) -> Vec<String> {
        let compiler = line.variables.iter().filter(|(name, _)| ["LLVM", "CC"].contains(name));
        let compiler: String = compiler.map(|(name, value)| format!(" {name}={value}")).collect();
        let options: String = (line.config.iter())
            .filter_map(|option| Some(format!(" -e {}", option.strip_prefix("CONFIG_")?.strip_suffix("=y")?)))
            .collect();
        let mut commands = Vec::new();
        if !options.is_empty() {
            commands.push(format!("scripts/config{options}"));
        }
        commands.push(format!("make{compiler} olddefconfig"));
        commands
    }
}
