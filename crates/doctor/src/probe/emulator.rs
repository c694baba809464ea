//! Checks of QEMU and its plugin API.

use super::boot::{self, QEMU};
use super::plugin_api::{self, PluginLoad};
use crate::host::{ProbeHost, SHORT};
use crate::version::Version;
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};
use std::path::Path;

/// A missing spec: the recorder reports it only after it has accepted the plugin API.
const NO_SPEC: &str = "/nonexistent/kerntune-doctor.json";
const INSTALL: &str =
    "`make setup` in kerntune's source (on Debian 12 it takes QEMU from backports); elsewhere \
    apt-get install qemu-system-x86";
/// Advice for a QEMU before plugin API 4.
const TOO_OLD: &str =
    "a newer QEMU first in PATH: 9.2 to 11.1 (plugin API 4 to 7) work; on Debian 12 `make setup` in \
    kerntune's source takes one from backports";
/// Advice for a QEMU that no longer has plugin API 7.
const TOO_NEW: &str =
    "a newer kerntune, or an older QEMU first in PATH: 9.2 to 11.1 (plugin API 4 to 7) work";
/// Advice for a QEMU that does not say its version.
const RUNS: &str = "a QEMU that runs first in PATH (`qemu-system-x86_64 --version`)";
/// Advice for a QEMU that has no plugins.
const NO_PLUGINS: &str =
    "a QEMU with plugins first in PATH, as distributions build it (`--enable-plugins`): 9.2 to 11.1 work";
/// Advice for a recorder that QEMU does not load.
const BUILD: &str = "`make build` in kerntune's source makes the recorder anew";

pub(crate) fn examine(host: &dyn ProbeHost, options: &ExamineOptions) -> Vec<HostCheck> {
    vec![qemu(host), plugin(host, options.recorder.as_deref()), boot::tcg(host, options)]
}

fn qemu(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(
        CheckGroup::Machines,
        QEMU,
        "the machines emulator and kvm",
        &[Ability::Emulator, Ability::Kvm],
    );
    let Some(path) = host.find(QEMU) else { return check.missing("not found", INSTALL) };
    let path = path.display();
    let version = match host.ask(&[QEMU, "--version"]) {
        Ok(ran) if ran.is_success() => Version::first_in(&ran.output),
        Ok(ran) => {
            return check.missing(format!("{path}: {}", ran.last_line().unwrap_or("does not run")), RUNS)
        }
        Err(error) => return check.missing(format!("{path}: {error}"), RUNS),
    };
    match version {
        Some(version) if version.is_at_least(9, 2) => check.ok(format!("{version} ({path})")),
        Some(version) => check.missing(format!("{version} ({path}), 9.2 or later is needed"), TOO_OLD),
        None => check.limited(format!("{path} does not report its version"), RUNS),
    }
}

fn plugin(host: &dyn ProbeHost, recorder: Option<&Path>) -> HostCheck {
    let needed_for = "the recorder, which is a plugin of QEMU";
    let check = HostCheck::of(CheckGroup::Machines, "plugin API", needed_for, &[Ability::Emulator]);
    let Some(path) = host.find(QEMU) else { return check.missing(format!("{QEMU} is missing"), INSTALL) };
    let exported = host.read(&path).ok().and_then(|bytes| plugin_api::exported(&bytes));
    let level = exported.map(|exported| exported.level);
    let load = |option: &str| {
        let argv = [QEMU, "-machine", "none", "-nodefaults", "-display", "none", "-plugin", option];
        host.run(&argv, SHORT, &mut |_| true)
    };
    let Some(recorder) = recorder else {
        let build = "`make build` makes the recorder, so that loading it can be tried";
        let unknown = "API unknown; no recorder was at hand to load";
        return match level {
            Some(level) if level >= plugin_api::NEEDED => check
                .limited(format!("API {level} by what QEMU exports; no recorder was at hand to load"), build),
            Some(level) => check.missing(format!("API {level}, {} is needed", plugin_api::NEEDED), TOO_OLD),
            // A script that starts QEMU exports nothing.
            None => match load(&format!("file={NO_SPEC}")) {
                Ok(ran) if ran.output.contains("Could not load plugin") => check.limited(unknown, build),
                _ => check.missing(format!("{} has no plugin support", path.display()), NO_PLUGINS),
            },
        };
    };
    let recorder =
        std::path::absolute(recorder).unwrap_or_else(|_| recorder.to_owned()).display().to_string();
    // QEMU ends an option at a comma, and reads two as one; a path with `=` would be read as an
    // option name.
    let option = format!("file={},spec={NO_SPEC}", recorder.replace(',', ",,"));
    let ran = match load(&option) {
        Ok(ran) => ran,
        Err(error) => return check.missing(error.to_string(), RUNS),
    };
    let (why, fix) = match plugin_api::loaded(&ran.output, NO_SPEC) {
        PluginLoad::Yes(told) => {
            let level = told.or(level).map_or("unknown".to_string(), |level| level.to_string());
            let found = format!("API {level}, loads {recorder}");
            if exported.is_none_or(|exported| exported.clock) {
                return check.ok(found);
            }
            return check.limited(
                format!("{found}; does not export {}", plugin_api::CLOCK.join(" and ")),
                "under load a wait may take longer than in another run (docs/disk.md, \"What repeats\"): \
                 QEMU as distributions build it (`--enable-modules`) has what prevents that",
            );
        }
        PluginLoad::TooOld(why) => (why, TOO_OLD),
        PluginLoad::TooNew(why) => (why, TOO_NEW),
        PluginLoad::NoPlugins(why) => (why, NO_PLUGINS),
        PluginLoad::No(why) => (why, BUILD),
    };
    check.missing(format!("{recorder}: {why}"), fix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::CheckStatus;

    fn version(text: &str) -> HostCheck {
        qemu(&TestHost::default().program(QEMU).answer("--version", 0, text))
    }

    #[test]
    fn versions_are_judged() {
        let check = version("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\n");
        assert_eq!(
            (check.status, check.found.as_str()),
            (CheckStatus::Ok, "10.0.2 (/usr/bin/qemu-system-x86_64)")
        );
        let check = version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\n");
        assert_eq!(check.status, CheckStatus::Missing);
        assert!(check.fix.unwrap().contains("make setup"));
        assert_eq!(version("hello\n").status, CheckStatus::Limited);
        assert_eq!(qemu(&TestHost::default()).status, CheckStatus::Missing);
    }

    #[test]
    fn a_recorder_that_complains_about_its_spec_is_loaded() {
        let said = format!("kerntune-recorder: cannot read {NO_SPEC}: No such file or directory\n");
        let host = TestHost::default().program(QEMU).answer("-plugin file=/r/l.so,spec=", 1, &said);
        let check = plugin(&host, Some(Path::new("/r/l.so")));
        assert_eq!((check.status, check.found.as_str()), (CheckStatus::Ok, "API unknown, loads /r/l.so"));
        assert_eq!(plugin(&host, None).status, CheckStatus::Missing);
    }

    /// Judges a script that starts a QEMU, which prints `said` when it loads the recorder.
    fn loading(said: &str) -> HostCheck {
        let host = TestHost::default().program(QEMU).file("/usr/bin/qemu-system-x86_64", "#!/bin/sh\n");
        let host = host.answer("-plugin file=/r/l.so,spec=", 1, &format!("{said}\n"));
        plugin(&host, Some(Path::new("/r/l.so")))
    }

    #[test]
    fn a_script_that_starts_qemu_is_asked_for_its_level() {
        for (levels, level) in [("2 to 4", "4"), ("4 to 6", "6"), ("7 to 7", "7")] {
            let check = loading(&format!(
                "kerntune-recorder: cannot read {NO_SPEC}: No such file or directory (os error 2); this QEMU has \
                 plugin API {levels}"
            ));
            assert_eq!((check.status, check.found), (CheckStatus::Ok, format!("API {level}, loads /r/l.so")));
        }
        let host = TestHost::default().program(QEMU).file("/usr/bin/qemu-system-x86_64", "#!/bin/sh\n");
        let host =
            host.answer("-plugin", 1, &format!("{QEMU}: Could not load plugin {NO_SPEC}: cannot open"));
        assert_eq!(plugin(&host, None).status, CheckStatus::Limited);
    }

    #[test]
    fn an_installed_qemu_is_never_advised_to_be_installed() {
        let refused = format!("{QEMU}: Could not load plugin /r/l.so: plugin requires API version");
        for (said, advice) in [
            (format!("{refused} 4, but this QEMU supports only up to version 3"), TOO_OLD),
            (format!("{refused} 7, but this QEMU supports only a minimum version of 8"), TOO_NEW),
            (format!("{QEMU}: -plugin: invalid option"), NO_PLUGINS),
            (format!("{QEMU}: Could not load plugin /r/l.so: invalid ELF header"), BUILD),
        ] {
            let check = loading(&said);
            assert_eq!((check.status, check.fix.as_deref()), (CheckStatus::Missing, Some(advice)), "{said}");
            assert!(!advice.contains("apt-get install"));
            assert!(said.ends_with(check.found.rsplit(": ").next().unwrap()), "{}", check.found);
        }
    }
}
