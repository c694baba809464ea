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
            return check.missing(format!("{path}: {}", ran.last_line().unwrap_or("does not run")), INSTALL)
        }
        Err(error) => return check.missing(format!("{path}: {error}"), INSTALL),
    };
    match version {
        Some(version) if version.is_at_least(9, 2) => check.ok(format!("{version} ({path})")),
        Some(version) => check.missing(format!("{version} ({path}), 9.2 or later is needed"), INSTALL),
        None => check.limited(format!("{path} does not report its version"), INSTALL),
    }
}

fn plugin(host: &dyn ProbeHost, recorder: Option<&Path>) -> HostCheck {
    let needed_for = "the recorder, which is a plugin of QEMU";
    let check = HostCheck::of(CheckGroup::Machines, "plugin API", needed_for, &[Ability::Emulator]);
    let Some(path) = host.find(QEMU) else { return check.missing(format!("{QEMU} is missing"), INSTALL) };
    let exported = host.read(&path).ok().and_then(|bytes| plugin_api::exported(&bytes));
    let level = exported.map(|exported| exported.level);
    let level_text = level.map_or("unknown".to_string(), |level| level.to_string());
    let Some(recorder) = recorder else {
        let build = "`make build` makes the recorder, so that loading it can be tried";
        return match level {
            Some(level) if level >= plugin_api::NEEDED => check
                .limited(format!("API {level} by what QEMU exports; no recorder was at hand to load"), build),
            Some(level) => check.missing(format!("API {level}, {} is needed", plugin_api::NEEDED), INSTALL),
            None => check.missing(format!("{} has no plugin support", path.display()), INSTALL),
        };
    };
    let recorder =
        std::path::absolute(recorder).unwrap_or_else(|_| recorder.to_owned()).display().to_string();
    // QEMU ends an option at a comma, and reads two as one; a path with `=` would be read as an
    // option name.
    let option = format!("file={},spec={NO_SPEC}", recorder.replace(',', ",,"));
    let argv = [QEMU, "-machine", "none", "-nodefaults", "-display", "none", "-plugin", &option];
    match host.run(&argv, SHORT, &mut |_| true) {
        Ok(ran) => match plugin_api::loaded(&ran.output, NO_SPEC) {
            PluginLoad::Yes if exported.is_some_and(|exported| !exported.clock) => {
                let lacking = plugin_api::CLOCK.join(" and ");
                let found = format!("API {level_text}, loads {recorder}; does not export {lacking}");
                check.limited(
                    found,
                    "under load a wait may take longer than in another run (docs/disk.md, \"What repeats\"): \
                     QEMU as distributions build it (`--enable-modules`) has what prevents that",
                )
            }
            PluginLoad::Yes => check.ok(format!("API {level_text}, loads {recorder}")),
            PluginLoad::No(why) => check.missing(format!("API {level_text}; {recorder}: {why}"), INSTALL),
        },
        Err(error) => check.missing(error.to_string(), INSTALL),
    }
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
}
