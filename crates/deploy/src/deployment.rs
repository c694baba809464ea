//! Deployment of one kernel: its steps, its state, and the way back. Start from [`Deployment`].
//!
//! The order of the steps keeps the machine bootable: until the last one the boot loader starts the
//! old kernel, and the last one lets it start the new kernel once. Rolling back begins at that end.

use crate::env_block::EnvBlock;
use crate::facts::MachineFacts;
use crate::grub::{self, GrubEntry, ENTRY, NEXT};
use crate::shell::{quoted, Script, ScriptInput, Shell};
use crate::source::{is_kernel_name, KernelFiles, Watchdog, MARK};
use crate::target::{Target, NEW};
use crate::{Error, Result};
use kerntune_work::interrupt;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Schema of the record of a deployment.
const RECORD_SCHEMA: &str = "kerntune-deployment/1";
const STATE: &str = "/var/lib/kerntune-deploy";
const RECORD: &str = "/var/lib/kerntune-deploy/state.json";
const OUTCOME: &str = "/var/lib/kerntune-deploy/outcome";
const CONFIRMED: &str = "/var/lib/kerntune-deploy/confirmed.cfg";
const CONFIG: &str = "/var/lib/kerntune-deploy/config";
const FILES: &str = "/boot/kerntune-deploy";
const IMAGE: &str = "/boot/kerntune-deploy/vmlinuz";
const INITRD: &str = "/boot/kerntune-deploy/initrd.img";
const CUSTOM: &str = "/boot/grub/custom.cfg";
const ENV: &str = "/boot/grub/grubenv";
const SCRIPT: &str = "/etc/systemd/kerntune-deploy.sh";
const UNIT: &str = "/etc/systemd/system/kerntune-deploy.service";
const UNIT_NAME: &str = "kerntune-deploy.service";
const MODULES: &str = "/lib/modules";
/// Place of the modules of a kernel whose release is another kernel's, too. Its RAM disk mounts them
/// over the other kernel's.
const SHARED_RELEASE: &str = "/lib/modules/.kerntune-deploy";
/// Room that stays free in `/boot`, in bytes.
const SPARE: u64 = 4 << 20;

/// Options of a deployment.
#[derive(Debug, Clone)]
pub struct DeployOptions {
    /// Command of the health check; without one, nothing confirms the kernel by itself.
    pub check: Option<String>,
    /// Time in which the machine must have started and passed the check, in seconds.
    pub within_seconds: u32,
    /// Time without a sign of life after which the watchdog restarts the machine, in seconds.
    pub watchdog_seconds: u32,
    /// Words to add to the new kernel's command line.
    pub append: Vec<String>,
}

/// Record of a deployment on the machine, which says what belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeploymentRecord {
    schema: String,
    /// Id of the deployment: eight hex digits of its packages' hash.
    pub id: String,
    /// Name of the kernel.
    pub name: String,
    /// Set if `custom.cfg` was there before.
    had_custom: bool,
    /// Set if GRUB's environment block was there before.
    had_env: bool,
    /// Driver of the watchdog, if the new kernel has one.
    pub watchdog: Option<String>,
}

/// State of a machine's deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeploymentState {
    /// There is none.
    None,
    /// It was interrupted while it was made or removed; the old kernel starts.
    Incomplete,
    /// The next start is the new kernel, once.
    Armed,
    /// The new kernel runs, and the next start is the old one.
    Trying,
    /// The new kernel is the default.
    Confirmed,
    /// The old kernel came back by itself.
    Returned,
}

/// State, and what it was found from.
#[derive(Debug, Clone, PartialEq)]
pub struct DeploymentStatus {
    /// The state.
    pub state: DeploymentState,
    /// Record of the deployment.
    pub record: Option<DeploymentRecord>,
    /// Word that the unit recorded: `armed`, `tried`, `running`, `failed` or `confirmed`.
    pub outcome: String,
    /// Release of the running kernel.
    pub running: String,
    /// Set if the deployed kernel runs.
    pub runs_new: bool,
}

/// Files of the boot loader as they are now.
#[derive(Debug)]
struct Loader {
    custom: Option<Vec<u8>>,
    env: Option<Result<EnvBlock, String>>,
}

impl Loader {
    fn is_armed(&self) -> bool {
        matches!(&self.env, Some(Ok(env)) if env.get(NEXT) == Some(ENTRY))
    }

    fn is_default(&self) -> bool {
        self.custom.as_deref().is_some_and(grub::is_default)
    }
}

/// The deployment of a machine.
#[derive(Debug)]
pub struct Deployment<'a> {
    target: Target<'a>,
}

impl<'a> Deployment<'a> {
    /// Makes the deployment of the machine behind a shell. `root` is the directory in front of every
    /// path, empty for a real machine.
    pub fn new(shell: &'a dyn Shell, root: &str) -> Self {
        Self { target: Target { shell, root: root.into() } }
    }

    /// Finds properties of the machine.
    ///
    /// # Errors
    /// A machine that cannot be reached.
    pub fn facts(&self) -> Result<MachineFacts> {
        MachineFacts::of(self.target.shell, &self.target.root)
    }

    fn refuse(&self, reason: impl Into<String>) -> Error {
        Error::Unsafe { host: self.target.shell.host().into(), reason: reason.into() }
    }

    fn loader(&self) -> Result<Loader> {
        let env = self.target.read(ENV)?.map(|bytes| EnvBlock::read(&bytes));
        Ok(Loader { custom: self.target.read(CUSTOM)?, env })
    }

    fn record(&self) -> Result<Option<DeploymentRecord>> {
        let Some(bytes) = self.target.read(RECORD)? else { return Ok(None) };
        let damaged =
            |reason: String| Error::Damaged { host: self.target.shell.host().into(), file: RECORD, reason };
        let record: DeploymentRecord =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if record.schema != RECORD_SCHEMA {
            return Err(damaged(format!("it is not of {RECORD_SCHEMA}")));
        }
        // The name becomes a path whose tree is removed.
        if !is_kernel_name(&record.name) || !is_kernel_name(&record.id) {
            return Err(damaged("it has a name that cannot be that of a kernel".into()));
        }
        Ok(Some(record))
    }

    /// Finds the state of the deployment.
    ///
    /// # Errors
    /// A machine that cannot be reached, a damaged record.
    pub fn status(&self) -> Result<DeploymentStatus> {
        let facts = self.facts()?;
        self.status_of(&facts)
    }

    fn status_of(&self, facts: &MachineFacts) -> Result<DeploymentStatus> {
        let (loader, record) = (self.loader()?, self.record()?);
        let outcome = self.target.read(OUTCOME)?.unwrap_or_default();
        let outcome = String::from_utf8_lossy(&outcome).trim().to_string();
        let runs_new = record.as_ref().is_some_and(|record| facts.running_deployment() == Some(&record.id));
        let state = match &record {
            None if facts.is("deployed") => DeploymentState::Incomplete,
            None => DeploymentState::None,
            Some(_) if loader.is_default() => DeploymentState::Confirmed,
            Some(_) if loader.is_armed() => DeploymentState::Armed,
            Some(_) if runs_new => DeploymentState::Trying,
            Some(_) if outcome.is_empty() => DeploymentState::Incomplete,
            Some(_) => DeploymentState::Returned,
        };
        Ok(DeploymentStatus { state, record, outcome, running: facts.get("running").into(), runs_new })
    }

    /// Returns the steps that deploy a kernel, after checks that change nothing. They can be carried
    /// out again after an interruption.
    ///
    /// # Errors
    /// [`Error::Unsafe`] with the reason why it cannot be done safely on this machine.
    pub fn steps(&self, kernel: &KernelFiles, options: &DeployOptions) -> Result<DeploymentSteps> {
        let facts = self.facts()?;
        let find_root = grub::check(&facts)?;
        let (loader, record) = (self.loader()?, self.record()?);
        let place = self.check(&facts, kernel, record.is_some())?;
        if let Some(other) =
            record.as_ref().filter(|record| record.id != kernel.id || record.name != kernel.name)
        {
            return Err(self.refuse(format!(
                "the kernel {} is deployed there; `kerntune deploy --rollback` removes it",
                other.name
            )));
        }
        if loader.is_default() {
            return Err(
                self.refuse("this kernel is confirmed there; `kerntune deploy --rollback` removes it")
            );
        }
        let env = match &loader.env {
            Some(Ok(env)) => env.clone(),
            None => EnvBlock::default(),
            Some(Err(reason)) => {
                let host = self.target.shell.host().into();
                return Err(Error::Damaged {
                    host,
                    file: ENV,
                    reason: format!(
                        "{reason}; `grub-editenv {ENV} create` makes a new one, without its variables"
                    ),
                });
            }
        };
        if let Some(other) = env.get(NEXT).filter(|entry| *entry != ENTRY) {
            return Err(self.refuse(format!(
                "GRUB is to start another entry next, {}: restart the machine first, or take it back with \
                 `grub-editenv - unset next_entry`",
                other.escape_debug()
            )));
        }
        let watchdog = kernel.watchdog(&facts.aliases, &facts.watchdogs);
        let record = record.unwrap_or(DeploymentRecord {
            schema: RECORD_SCHEMA.into(),
            id: kernel.id.clone(),
            name: kernel.name.clone(),
            had_custom: loader.custom.is_some(),
            had_env: loader.env.is_some(),
            watchdog: watchdog.as_ref().map(|watchdog| watchdog.driver.clone()),
        });
        let [confirmed, once] = self.entries(&facts, kernel, options, watchdog.as_ref(), find_root)?;
        let custom = grub::without_block(loader.custom.as_deref().unwrap_or_default());
        let mut scripts = Vec::new();
        let mut disarmed = env.clone();
        disarmed.unset(NEXT);
        if loader.is_armed() {
            scripts.push(self.write_env("take back the start of the new kernel", &env, &disarmed));
        }
        let json = serde_json::to_vec_pretty(&record).unwrap_or_default();
        let mut note = self.target.write("note the deployment", RECORD, ScriptInput::Bytes(json));
        note.commands.insert(0, format!("mkdir -p {}", self.target.at(STATE)));
        scripts.push(note);
        scripts.push(self.modules(kernel, place));
        let image = ScriptInput::File(kernel.image.clone());
        let mut write_image = self.target.write("write the kernel", IMAGE, image);
        write_image.commands.insert(0, format!("mkdir -p {}", self.target.at(FILES)));
        scripts.push(write_image);
        // mkinitramfs reads there which compression the kernel knows; its step removes the file.
        let config = ScriptInput::Bytes(kernel.config().into());
        let path = if place == MODULES { config_path(&kernel.name) } else { CONFIG.into() };
        scripts.push(self.target.write("write the configuration for mkinitramfs", &path, config));
        scripts.push(self.initrd(kernel, watchdog.as_ref(), place));
        let script = self.confirm_script(&record, options);
        scripts.push(self.target.write(
            "write the script that confirms",
            SCRIPT,
            ScriptInput::Bytes(script.into()),
        ));
        scripts.push(self.target.write("write its unit", UNIT, ScriptInput::Bytes(unit().into())));
        let confirmed = ScriptInput::Bytes(confirmed.into());
        scripts.push(self.target.write(
            "write the entry that is used when it is confirmed",
            CONFIRMED,
            confirmed,
        ));
        let custom = ScriptInput::Bytes([custom, once.into()].concat());
        scripts.push(self.target.write("add an entry to GRUB's menu", CUSTOM, custom));
        let armed = ScriptInput::Bytes(b"armed\n".to_vec());
        scripts.push(self.target.write("note that the new kernel starts next", OUTCOME, armed));
        let mut env = disarmed.clone();
        env.set(NEXT, ENTRY).map_err(|reason| self.refuse(format!("{ENV}: {reason}")))?;
        let before = if loader.env.is_some() { Some(&disarmed) } else { None };
        let what = "let GRUB start the new kernel next, once";
        scripts.push(match before {
            Some(before) => self.write_env(what, before, &env),
            None => self.target.write(what, ENV, ScriptInput::Bytes(env.bytes())),
        });
        let guards = guards(kernel, options, watchdog.as_ref());
        Ok(DeploymentSteps { scripts, watchdog, guards })
    }

    /// Checks that a kernel can be deployed; returns the directory for its modules.
    fn check(&self, facts: &MachineFacts, kernel: &KernelFiles, is_ours: bool) -> Result<&'static str> {
        if facts.get("uid") != "0" {
            return Err(self.refuse("a kernel is deployed by root only"));
        }
        if facts.get("machine") != "x86_64" {
            return Err(self.refuse(format!("it is {}, and the kernel is for x86_64", facts.get("machine"))));
        }
        for (key, reason) in [
            ("systemd", "it does not run systemd, which starts the health check"),
            (
                "mkinitramfs",
                "it has no mkinitramfs (Debian package initramfs-tools), which makes the RAM disk",
            ),
            ("boot_writable", "/boot cannot be written"),
            ("grub_writable", "/boot/grub cannot be written"),
            ("etc_writable", "/etc/systemd/system cannot be written"),
            ("modules_writable", "/lib/modules cannot be written"),
            ("old_kernel", "the running kernel's image is not in /boot, so there is nothing to come back to"),
            (
                "old_initrd",
                "the running kernel's RAM disk is not in /boot, so there is nothing to come back to",
            ),
        ] {
            if !facts.is(key) {
                return Err(self.refuse(reason));
            }
        }
        if facts.running_deployment().is_some() {
            return Err(self.refuse(
                "a deployed kernel runs there: `kerntune deploy --rollback` and a restart bring the old one back",
            ));
        }
        let shares_release = facts.is(&format!("module:{}", kernel.name));
        if facts.is(&format!("config:{}", kernel.name)) && !is_ours && !shares_release {
            return Err(self.refuse(format!(
                "/boot/config-{0} belongs to another kernel of that name, which has no /lib/modules/{0}; give the new one a \
                 release of its own (--set 'CONFIG_LOCALVERSION=\"-web\"' when it is built)",
                kernel.name
            )));
        }
        if shares_release && !facts.is("unshare") {
            return Err(self.refuse(format!(
                "another kernel has the release {}, and there is no `unshare` (Debian package util-linux), which makes a \
                 RAM disk with the new one's modules",
                kernel.name
            )));
        }
        let initrd = match facts.number("initrd_bytes") {
            0 => 64 << 20,
            bytes => bytes + bytes / 2,
        };
        let mut boot = kernel.image_bytes + initrd + SPARE;
        let modules = kernel.modules_bytes + SPARE;
        if facts.get("boot_device") == facts.get("modules_device") {
            boot += modules;
        }
        for (place, needed, free) in [
            ("/boot", boot, facts.number("boot_free")),
            ("/lib/modules", modules, facts.number("modules_free")),
        ] {
            if free << 10 < needed {
                return Err(self.refuse(format!(
                    "{place} has {} MiB free, and the new kernel needs {} MiB",
                    free >> 10,
                    needed.div_ceil(1 << 20)
                )));
            }
        }
        Ok(if shares_release { SHARED_RELEASE } else { MODULES })
    }

    /// Returns our part of `custom.cfg` for a confirmed kernel and for one that starts once.
    fn entries(
        &self,
        facts: &MachineFacts,
        kernel: &KernelFiles,
        options: &DeployOptions,
        watchdog: Option<&Watchdog>,
        find_root: String,
    ) -> Result<[String; 2]> {
        let boot = facts.get("grub_path").trim_end_matches('/');
        if !boot.chars().all(|c| c.is_ascii_alphanumeric() || "/._@-".contains(c)) {
            return Err(self.refuse("GRUB's path of /boot is unusual"));
        }
        let running = facts.get("old");
        if !is_kernel_name(running) {
            return Err(self.refuse("the running kernel has an unusual name"));
        }
        let quote = |words: &[String]| -> Result<String> {
            let quoted: Result<Vec<String>, String> = words.iter().map(|word| grub::word(word)).collect();
            Ok(quoted.map_err(|reason| self.refuse(reason))?.join(" "))
        };
        let old: Vec<String> = facts.command_line().into_iter().map(String::from).collect();
        let mark = format!("kerntune_deploy={}", kernel.id);
        let new = [&old[..], &options.append, &[mark]].concat();
        let guards = guards(kernel, options, watchdog);
        let entry = GrubEntry {
            title: format!("kerntune: Linux {}", kernel.name),
            find_root,
            new: [IMAGE, INITRD].map(|path| grub_path(boot, path)),
            old: ["vmlinuz", "initrd.img"].map(|file| format!("{boot}/{file}-{running}")),
            old_line: quote(&old)?,
        };
        let unit = format!("systemd.wants={UNIT_NAME}");
        let once = quote(&[&new[..], &guards, &[unit]].concat())?;
        Ok([entry.block(&quote(&new)?, true), entry.block(&once, false)])
    }

    /// Returns the script that changes the environment block: in place, as GRUB does it, if its
    /// variables are in one sector, which disks write whole; else by a new file.
    fn write_env(&self, what: &str, before: &EnvBlock, after: &EnvBlock) -> Script {
        let input = ScriptInput::Bytes(after.bytes());
        if before.fits_one_sector() && after.fits_one_sector() {
            let dd = format!(
                "dd of={} bs=1024 count=1 iflag=fullblock conv=notrunc,fsync status=none",
                self.target.at(ENV)
            );
            return Script { input, ..Script::new(what, [dd]) };
        }
        self.target.write(what, ENV, input)
    }

    /// Returns the script that writes the modules below `place`.
    fn modules(&self, kernel: &KernelFiles, place: &str) -> Script {
        let at = |path: &str| self.target.at(&format!("{place}/{path}"));
        let (new, old, own) = (at(NEW), at(".kerntune-old"), at(&kernel.name));
        let mark = at(&format!("{}/{MARK}", kernel.name));
        let commands = [
            format!("rm -rf {new} {old}"),
            format!("mkdir -p {new}"),
            format!("tar -x -C {new} --no-same-owner -f -"),
            format!("sync -f {new}"),
            format!("[ ! -e {own} ] || [ -e {mark} ]"),
            format!("[ ! -e {own} ] || mv {own} {old}"),
            format!("mv {new}/{} {own}", quoted(&kernel.name)),
            format!("rm -rf {new} {old}"),
            format!("sync -f {own}"),
        ];
        Script {
            input: ScriptInput::File(kernel.modules.clone()),
            ..Script::new("write the modules", commands)
        }
    }

    /// Returns the script that makes the RAM disk. A script in it arms the watchdog, because a hang
    /// may come before systemd. Another one brings the modules from `place`.
    fn initrd(&self, kernel: &KernelFiles, watchdog: Option<&Watchdog>, place: &str) -> Script {
        let settings = format!("{STATE}/initramfs-tools");
        let (at, temporary) = (self.target.at(&settings), self.target.at(&format!("{STATE}/tmp")));
        let new = self.target.at(&format!("{INITRD}{NEW}"));
        let mut commands = vec![
            format!("rm -rf {at} {temporary}"),
            format!("cp -a {} {at}", self.target.at("/etc/initramfs-tools")),
            format!("mkdir -p {temporary} {}", self.target.at(&format!("{settings}/scripts/init-top"))),
        ];
        if let Some(watchdog) = watchdog {
            let script = self.target.at(&format!("{settings}/scripts/init-top/kerntune-watchdog"));
            commands.push(format!("printf %s {} >{script}", quoted(&arm_watchdog(watchdog))));
            commands.push(format!("chmod 755 {script}"));
            let list = self.target.at(&format!("{settings}/modules"));
            commands.push(format!("printf '%s\\n' {} >>{list}", watchdog.driver));
        }
        let name = quoted(&kernel.name);
        let make = format!("TMPDIR={temporary} mkinitramfs -d {at} -o {new} {name} </dev/null >&2");
        if place == MODULES {
            commands.push(make);
        } else {
            let scripts = self.target.at(&format!("{settings}/scripts/init-bottom"));
            commands.push(format!("mkdir -p {scripts}"));
            let text = quoted(&mount_modules(&kernel.name));
            commands.push(format!("printf %s {text} >{scripts}/kerntune-modules"));
            commands.push(format!("chmod 755 {scripts}/kerntune-modules"));
            // mkinitramfs sees the new kernel's files under the names of the other one's.
            let bind = |from: &str, to: &str| {
                format!("mount --bind {} {}", self.target.at(from), self.target.at(to))
            };
            let modules = bind(&format!("{place}/{}", kernel.name), &format!("{MODULES}/{}", kernel.name));
            let config = config_path(&kernel.name);
            let config = format!("if [ -e {} ]; then {}; fi", self.target.at(&config), bind(CONFIG, &config));
            commands.push(format!(
                "unshare --mount sh -c {}",
                quoted(&format!("set -e; {modules}; {config}; {make}"))
            ));
        }
        commands.push(format!("[ -s {new} ]"));
        commands.push(format!("sync {new}"));
        commands.extend(self.target.renamed(INITRD));
        let config = if place == MODULES { config_path(&kernel.name) } else { CONFIG.into() };
        commands.push(format!("rm -rf {at} {temporary} {}", self.target.at(&config)));
        Script::new("make the RAM disk", commands)
    }

    fn confirm_script(&self, record: &DeploymentRecord, options: &DeployOptions) -> String {
        include_str!("confirm.sh")
            .replace("@ROOT@", &quoted(&self.target.root))
            .replace("@ID@", &quoted(&record.id))
            .replace("@WITHIN@", &options.within_seconds.to_string())
            .replace("@CUSTOM@", &quoted(CUSTOM))
            .replace("@CHECK@", &quoted(options.check.as_deref().unwrap_or_default()))
    }

    /// Carries out a step.
    ///
    /// # Errors
    /// [`Error::Step`].
    pub fn carry_out(&self, script: &Script) -> Result<()> {
        self.target.step(script).map(drop)
    }

    /// Makes the new kernel, which must be running, the default.
    ///
    /// # Errors
    /// [`Error::Unsafe`] if the new kernel does not run.
    pub fn confirm(&self) -> Result<()> {
        let status = self.status()?;
        match status.state {
            DeploymentState::Confirmed => return Ok(()),
            DeploymentState::Trying => {}
            _ => {
                return Err(
                    self.refuse("the deployed kernel does not run; only a running one can be confirmed")
                )
            }
        }
        let script = format!("sh {} confirm", self.target.at(SCRIPT));
        self.carry_out(&Script::new("make the new kernel the default", [script]))
    }

    /// Returns the steps that make the old kernel the default again, and those that then remove the
    /// new one. Between them the machine must be restarted if the new kernel runs.
    ///
    /// # Errors
    /// A machine that cannot be reached, a damaged record.
    pub fn rollback(&self) -> Result<RollbackSteps> {
        let facts = self.facts()?;
        let status = self.status_of(&facts)?;
        let loader = self.loader()?;
        let mut disarm = Vec::new();
        if status.state == DeploymentState::None {
            return Ok(RollbackSteps { disarm, remove: Vec::new(), runs_new: false });
        }
        if let Some(Ok(env)) = &loader.env {
            let mut without = env.clone();
            without.unset(NEXT);
            // GRUB leaves an empty variable behind.
            if without != *env && env.get(NEXT).is_none_or(|entry| entry == ENTRY) {
                disarm.push(self.write_env("take back the start of the new kernel", env, &without));
            }
        }
        let record = status.record.as_ref();
        let had_custom = record.is_none_or(|record| record.had_custom);
        let had_env = record.is_none_or(|record| record.had_env);
        if let Some(custom) = &loader.custom {
            let kept = grub::without_block(custom);
            let what = "remove the entry from GRUB's menu";
            if kept.is_empty() && !had_custom {
                disarm.push(self.removal(what, &[CUSTOM]));
            } else if kept != *custom {
                disarm.push(self.target.write(what, CUSTOM, ScriptInput::Bytes(kept)));
            }
        }
        let mut remove = Vec::new();
        if !had_env {
            let unused = format!("[ ! -f {0} ] || grep -q '^[^#=]*=' {0} || rm -f {0}", self.target.at(ENV));
            remove.push(Script::new("remove GRUB's environment block, which was not there before", [unused]));
        }
        let news = [UNIT, SCRIPT, CUSTOM, ENV].map(|path| format!("{path}{NEW}"));
        let files: Vec<&str> = [UNIT, SCRIPT].into_iter().chain(news.iter().map(String::as_str)).collect();
        remove.push(self.removal("remove the unit and its script", &files));
        let at = |path: &str| self.target.at(&format!("/lib/modules/{path}"));
        let mut modules = Vec::new();
        modules.push(format!("rm -rf {}", self.target.at(SHARED_RELEASE)));
        if let Some(record) = record {
            let mark = at(&format!("{}/{MARK}", record.name));
            let config = config_path(&record.name);
            // Another kernel's configuration stays; ours was written where there was none.
            modules.push(format!(
                "[ -e {0} ] && [ ! -e {mark} ] || rm -f {1} {2}",
                at(&record.name),
                self.target.at(&config),
                self.target.at(&format!("{config}{NEW}"))
            ));
            modules.push(format!("[ ! -e {mark} ] || mv {} {}", at(&record.name), at(".kerntune-old")));
        }
        // Below their own names, parts of an interrupted removal are still ours.
        modules.insert(0, format!("rm -rf {} {}", at(NEW), at(".kerntune-old")));
        modules.push(format!("rm -rf {}", at(".kerntune-old")));
        remove.push(Script::new("remove the modules", modules));
        remove.push(Script::new("remove the kernel", [format!("rm -rf {}", self.target.at(FILES))]));
        let rest = [
            format!(
                "find {} -mindepth 1 -depth ! -path {} -delete",
                self.target.at(STATE),
                self.target.at(RECORD)
            ),
            "sync".into(),
            format!("rm -rf {}", self.target.at(STATE)),
            "sync".into(),
        ];
        let rest = rest.map(|command| match command.as_str() {
            "sync" => command,
            _ => format!("[ ! -e {} ] || {command}", self.target.at(STATE)),
        });
        remove.push(Script::new("remove the record", rest));
        Ok(RollbackSteps { disarm, remove, runs_new: status.runs_new })
    }

    fn removal(&self, what: &str, paths: &[&str]) -> Script {
        let quoted: Vec<String> = paths.iter().map(|path| self.target.at(path)).collect();
        Script::new(what, [format!("rm -f {}", quoted.join(" ")), "sync".into()])
    }

    /// Returns the id of the machine's current boot.
    ///
    /// # Errors
    /// A machine that cannot be reached.
    pub fn boot_id(&self) -> Result<String> {
        let script = format!("cat {}", self.target.at("/proc/sys/kernel/random/boot_id"));
        Ok(self.target.step(&Script::new("read the id of the boot", [script]))?.trim().into())
    }

    /// Returns the build id of the running kernel, in hexadecimal; `None` if it was linked without
    /// one.
    ///
    /// # Errors
    /// A machine that cannot be reached.
    pub fn build_id(&self) -> Result<Option<String>> {
        let script = format!("od -An -v -tx1 {}", self.target.at("/sys/kernel/notes"));
        let hex = self.target.step(&Script::new("read the build id of the running kernel", [script]))?;
        let notes: Option<Vec<u8>> =
            hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        Ok(notes.and_then(|notes| kerntune_kernel::build_id_in_notes(&notes)))
    }

    /// Lets the boot loader start the deployed kernel next, once more.
    ///
    /// # Errors
    /// [`Error::Unsafe`] if no complete deployment is there.
    pub fn arm(&self) -> Result<()> {
        let loader = self.loader()?;
        let (Some(Ok(before)), Some(_)) = (&loader.env, self.record()?) else {
            return Err(self.refuse("no kernel is deployed there"));
        };
        if self.target.read(OUTCOME)?.is_none() {
            return Err(self.refuse("the deployment there is not complete"));
        }
        let mut after = before.clone();
        after.set(NEXT, ENTRY).map_err(|reason| self.refuse(format!("{ENV}: {reason}")))?;
        let armed = ScriptInput::Bytes(b"armed\n".to_vec());
        self.carry_out(&self.target.write("note that the new kernel starts next", OUTCOME, armed))?;
        self.carry_out(&self.write_env("let GRUB start the new kernel next, once", before, &after))
    }

    /// Lets the boot loader start its default next, if it was to start the deployed kernel.
    ///
    /// # Errors
    /// A machine that cannot be reached.
    pub fn disarm(&self) -> Result<()> {
        let loader = self.loader()?;
        let Some(Ok(before)) = loader.env.as_ref().filter(|_| loader.is_armed()) else { return Ok(()) };
        let mut after = before.clone();
        after.unset(NEXT);
        self.carry_out(&self.write_env("take back the start of the new kernel", before, &after))
    }

    /// Waits until the machine runs with another boot id than `before`.
    ///
    /// # Errors
    /// [`Error::NotBack`] after `limit`; an interrupt.
    pub fn wait_for_restart(&self, before: &str, limit: Duration) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() <= limit {
            std::thread::sleep(Duration::from_secs(2));
            interrupt::check()?;
            match self.boot_id() {
                Ok(now) if now != before => return Ok(()),
                Err(Error::Work(error)) => return Err(error.into()),
                _ => {}
            }
        }
        let advice = "if it hangs, switch it off and on: that starts the old kernel, unless the new one was \
                      confirmed";
        Err(Error::NotBack { host: self.target.shell.host().into(), seconds: limit.as_secs(), advice })
    }

    /// Restarts the machine, a second later.
    ///
    /// # Errors
    /// A machine that cannot be reached.
    pub fn restart(&self) -> Result<()> {
        let later = "nohup sh -c 'sleep 1; systemctl reboot' >/dev/null 2>&1 </dev/null &";
        self.carry_out(&Script::new("restart the machine", [later.into()]))
    }
}

/// Steps that deploy a kernel.
#[derive(Debug)]
pub struct DeploymentSteps {
    /// The steps, in order.
    pub scripts: Vec<Script>,
    /// The watchdog that the new kernel has on this machine.
    pub watchdog: Option<Watchdog>,
    /// Options of the new kernel that turn a panic or a lock-up into a restart.
    pub guards: Vec<String>,
}

/// Steps that remove a kernel.
#[derive(Debug)]
pub struct RollbackSteps {
    /// Steps after which the old kernel is the default.
    pub disarm: Vec<Script>,
    /// Steps that remove everything, when the old kernel runs.
    pub remove: Vec<Script>,
    /// Set if the new kernel runs.
    pub runs_new: bool,
}

/// Returns the options of a kernel that has not been confirmed: what it can turn into a restart.
fn guards(kernel: &KernelFiles, options: &DeployOptions, watchdog: Option<&Watchdog>) -> Vec<String> {
    let mut words = vec!["panic=10".to_string(), "oops=panic".into()];
    for (option, word) in [
        ("CONFIG_SOFTLOCKUP_DETECTOR", "softlockup_panic=1"),
        ("CONFIG_DETECT_HUNG_TASK", "hung_task_panic=1"),
        ("CONFIG_HARDLOCKUP_DETECTOR", "nmi_watchdog=panic"),
    ] {
        if kernel.has(option) {
            words.push(word.into());
        }
    }
    if let Some(Watchdog { driver, parameter }) = watchdog {
        words.push(format!("{driver}.{parameter}={}", options.watchdog_seconds));
        words.push(format!("systemd.watchdog_sec={}", options.watchdog_seconds));
    }
    words
}

/// Returns the path of a kernel's configuration.
fn config_path(name: &str) -> String {
    format!("/boot/config-{name}")
}

/// Returns a path of `/boot` as GRUB sees it.
fn grub_path(boot: &str, path: &str) -> String {
    format!("{boot}{}", path.strip_prefix("/boot").unwrap_or(path))
}

/// Returns the script of the RAM disk that mounts the modules of a kernel over those of another one of
/// its release. Without them it does not go on: modules of another build would corrupt memory.
fn mount_modules(name: &str) -> String {
    format!(
        "#!/bin/sh\n\
         [ \"${{1-}}\" != prereqs ] || exit 0\n\
         . /scripts/functions\n\
         mount -o bind \"$rootmnt{SHARED_RELEASE}/{name}\" \"$rootmnt{MODULES}/{name}\" ||\n\
         \tpanic 'kerntune: the modules of the deployed kernel could not be mounted'\n"
    )
}

/// Returns the script of the RAM disk that arms the watchdog: a device that is closed without the
/// letter V goes on counting. A RAM disk without busybox has no `grep` and no fractions of seconds.
fn arm_watchdog(watchdog: &Watchdog) -> String {
    format!(
        "#!/bin/sh\n\
         [ \"${{1-}}\" != prereqs ] || exit 0\n\
         read -r line </proc/cmdline\n\
         case $line in *systemd.wants={UNIT_NAME}*) ;; *) exit 0 ;; esac\n\
         modprobe {} || [ -e /dev/watchdog0 ] || exit 0\n\
         i=0\n\
         while [ ! -e /dev/watchdog0 ] && [ $i -lt 10 ]; do sleep 1; i=$((i + 1)); done\n\
         [ ! -e /dev/watchdog0 ] || echo >/dev/watchdog0\n",
        watchdog.driver
    )
}

fn unit() -> String {
    format!(
        "# Written by `kerntune deploy`; only the entry of the new kernel starts it (systemd.wants=).\n\
         [Unit]\n\
         Description=Confirm the kernel that kerntune deployed, or start the old one\n\
         DefaultDependencies=no\n\
         After=systemd-remount-fs.service\n\
         Conflicts=shutdown.target\n\
         Before=shutdown.target\n\
         [Service]\n\
         ExecStart=/bin/sh {SCRIPT} trial\n\
         StandardOutput=journal+console\n\
         StandardError=journal+console\n"
    )
}
