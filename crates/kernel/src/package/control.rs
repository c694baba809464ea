//! Names, versions and maintainer scripts of a Debian package.

use crate::KernelManifest;
use kerntune_isa::{GuestIsa, Isa};

/// Names of the maintainer scripts.
pub(super) const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];

/// Digits of a kernel's id in file names.
const ID_DIGITS: usize = 8;

/// Text of `/usr/share/doc/PACKAGE/copyright`.
pub(super) const COPYRIGHT: &str = "\
This is a Linux kernel, packaged by kerntune. The sources can be found at most Linux sites, such as
https://www.kernel.org/pub/linux/kernel; /usr/lib/kerntune has the origin and the hash of those that this
one was built from, and the patches that were applied to them.

Copyright: 1991 - 2026 Linus Torvalds and others.

The Linux kernel is under the GNU General Public License, version 2. On Debian systems its text is in
/usr/share/common-licenses/GPL-2.
";

/// Names of a package and its files.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PackageNames {
    /// Kernel release, as in `uname -r`.
    pub release: String,
    /// Suffix of the files in `/boot`, and the name that hooks get.
    pub name: String,
    /// Name of the Debian package.
    pub package: String,
    /// Version of the Debian package.
    pub version: String,
    /// Id of the kernel.
    id: String,
    /// The kernel has modules.
    pub has_modules: bool,
    /// The kernel supports an initial RAM disk.
    initrd: bool,
    /// Label, id and recipe: `base-gcc-pgo-rr (647d628482bdcbc9), recipe gcc-pgo`.
    kernel: String,
    /// Version of the compiler.
    compiler: String,
}

impl PackageNames {
    /// Derives the names. `config` is the text of the final configuration.
    ///
    /// Kernels that kerntune builds from one configuration have one release, base and tuned kernel
    /// alike. Their files have the id in their names, so that they can be installed side by side.
    /// Modules are found only by the release, so a kernel with modules is named by its release and
    /// replaces another.
    pub fn of(manifest: &KernelManifest, release: &str, config: &str) -> Self {
        let has = |line: &str| config.lines().any(|l| l == line);
        let has_modules = has("CONFIG_MODULES=y");
        let id: String = manifest.id.chars().take(ID_DIGITS).collect();
        let name = if has_modules { release.to_string() } else { format!("{release}-{id}") };
        // Debian policy 5.6.1: lower case letters, digits, plus, minus, full stop.
        let package = format!("linux-image-{}", kept(&name.to_lowercase(), "+-.", '-'));
        let built: String = manifest.built.chars().filter(char::is_ascii_digit).collect();
        // Policy 5.6.12: these characters, letters and digits. A release candidate sorts before the
        // release.
        let version = format!("{}-1kt{built}", kept(&manifest.version.replace("-rc", "~rc"), "+-.~", '.'));
        let recipe = manifest.recipe.as_ref().map_or(String::new(), |recipe| format!(", recipe {recipe}"));
        Self {
            release: release.into(),
            id: manifest.id.clone(),
            name,
            package,
            version,
            has_modules,
            initrd: has("CONFIG_BLK_DEV_INITRD=y"),
            kernel: format!("{} ({}){recipe}", manifest.label, manifest.id),
            compiler: manifest.compiler.version.clone(),
        }
    }

    /// Returns the text of `DEBIAN/control`; `bytes` is the installed size.
    pub fn control(&self, bytes: u64) -> String {
        let Self { name, package, version, release, kernel, compiler, .. } = self;
        let depends = if self.has_modules { "Depends: kmod\n" } else { "" };
        let recommends =
            if self.initrd { "Recommends: initramfs-tools | linux-initramfs-tool\n" } else { "" };
        format!(
            "Package: {package}\n\
             Source: linux-kerntune\n\
             Version: {version}\n\
             Architecture: {architecture}\n\
             Maintainer: kerntune <kerntune@localhost>\n\
             Installed-Size: {size}\n\
             {depends}{recommends}\
             Section: kernel\n\
             Priority: optional\n\
             Homepage: https://www.kernel.org/\n\
             Description: Linux kernel {release}, kerntune's {kernel}\n \
             This package contains the image that kerntune built and measured, byte by byte,\n \
             its modules if it has any, and what it was made from: /usr/lib/kerntune/{name}.\n \
             .\n \
             Compiled by {compiler}.\n",
            architecture = GuestIsa::DEBIAN,
            size = bytes.div_ceil(1024),
        )
    }

    /// Returns a maintainer script. It calls the hooks in `/etc/kernel` like Kbuild's `builddeb`,
    /// and removes the files that depmod creates.
    pub fn script_of(&self, which: &str) -> String {
        let Self { name, initrd, .. } = self;
        let initrd = if *initrd { "Yes" } else { "No" };
        // The lists of modules are needed as long as the modules exist.
        let last = if self.has_modules { "postrm" } else { "prerm" };
        let depmods = match which == last {
            true => format!(
                "if [ \"$1\" = remove ]; then\n\
                 \trm -f '/lib/modules/{name}'/modules.*\n\
                 \trmdir '/lib/modules/{name}' 2>/dev/null || true\n\
                 fi\n"
            ),
            false => String::new(),
        };
        format!(
            "#!/bin/sh\n\
             set -e\n\
             # Hooks read what happens, and whether an initial RAM disk is of use.\n\
             export DEB_MAINT_PARAMS=\"$*\"\n\
             export INITRD={initrd}\n\
             if [ -d /etc/kernel/{which}.d ]; then\n\
             \trun-parts --arg='{name}' --arg='/boot/vmlinuz-{name}' /etc/kernel/{which}.d\n\
             fi\n\
             {depmods}"
        )
    }

    /// Returns the README beside the provenance.
    pub fn readme(&self) -> String {
        let Self { name, release, kernel, compiler, id, .. } = self;
        format!(
            "/boot/vmlinuz-{name}: kerntune's kernel {kernel},\n\
             compiled by {compiler}. When it runs, `uname -r` says {release}.\n\
             \n\
             kernel.json           source, configuration, compiler, flags, recipe (kerntune's docs/json.md)\n\
             profile.tar.zst       what the compiler was given: counters, or a sample profile\n\
             order.txt             the functions that were linked first, in this order\n\
             patches/              what was applied to the source\n\
             comparison-*.json     what it gains, measured against its base kernel\n\
             proof-*.json          that the profile is in the image\n\
             \n\
             What does not apply is not there. `kerntune kernel reproduce {id}` builds it again and compares.\n",
        )
    }
}

/// Replaces by `other` every character that is neither an ASCII letter or digit nor one of `signs`.
fn kept(text: &str, signs: &str, other: char) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || signs.contains(c) { c } else { other }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::store::tests::manifest;

    fn names(release: &str, config: &str) -> PackageNames {
        let mut manifest = manifest("647d628482bdcbc9", "tuned", "2026-11-21T15:07:04Z");
        manifest.recipe = Some("gcc-pgo".into());
        PackageNames::of(&manifest, release, config)
    }

    #[test]
    fn kernels_of_one_release_are_told_apart_by_their_id() {
        let names = names("6.12.117-kt", "CONFIG_BLK_DEV_INITRD=y\n");
        assert_eq!(names.package, "linux-image-6.12.117-kt-647d6284");
        assert_eq!(names.version, "6.12.117-1kt20261121150704");
        assert!(names.script_of("postinst").contains("--arg='/boot/vmlinuz-6.12.117-kt-647d6284'"));
        assert!(
            names.script_of("prerm").contains("/etc/kernel/prerm.d")
                && names.script_of("prerm").contains("INITRD=Yes")
        );
        let control = names.control(2049);
        assert!(control.contains("Installed-Size: 3\n") && !control.contains("Depends"), "{control}");
        // One field per line; continuation lines begin with a blank.
        assert!(control.lines().all(|line| line.starts_with(' ') || line.contains(": ")), "{control}");
        assert!(control.ends_with('\n'));
    }

    #[test]
    fn a_kernel_with_modules_is_called_by_its_release() {
        let names = names("6.12.117-Web_1", "CONFIG_MODULES=y\n");
        assert_eq!(
            (names.name.as_str(), names.package.as_str()),
            ("6.12.117-Web_1", "linux-image-6.12.117-web-1")
        );
        assert!(
            names.control(1).contains("Depends: kmod\n") && names.script_of("postinst").contains("INITRD=No")
        );
    }

    /// EXTRAVERSION and CONFIG_LOCALVERSION of vendors, checked by dpkg itself.
    #[test]
    fn debian_takes_the_names_of_odd_releases() {
        let versions = [
            ("6.12.117-Vendor_x1", "6.12.117-Vendor.x1"),
            ("5.15.153.1-microsoft-standard-WSL2_", "5.15.153.1-microsoft-standard-WSL2."),
            ("6.12.0-rc3_next:1", "6.12.0~rc3.next.1"),
            ("6.1.0@a,b=c#d%e^f", "6.1.0.a.b.c.d.e.f"),
            ("6.12.1-π", "6.12.1-."),
            ("6.12.1+dirty~2", "6.12.1+dirty~2"),
        ];
        for (version, wanted) in versions {
            let mut of = manifest("647d628482bdcbc9", "x", "2026-01-01T00:00:00Z");
            of.version = version.into();
            let names = PackageNames::of(&of, version, "CONFIG_MODULES=y\n");
            assert_eq!(names.version, format!("{wanted}-1kt20260101000000"));
            let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
            assert!(names.package.chars().all(sound), "{}", names.package);
            let judged =
                std::process::Command::new("dpkg").args(["--validate-version", &names.version]).status();
            assert!(judged.map_or(true, |status| status.success()), "{version}");
            let judged =
                std::process::Command::new("dpkg").args(["--validate-pkgname", &names.package]).status();
            assert!(judged.map_or(true, |status| status.success()), "{version}");
        }
    }

    #[test]
    fn a_release_candidate_sorts_before_the_release() {
        let mut candidate = manifest("aa11", "x", "2026-01-01T00:00:00Z");
        candidate.version = "7.0.0-rc3".into();
        assert_eq!(PackageNames::of(&candidate, "7.0.0-rc3", "").version, "7.0.0~rc3-1kt20260101000000");
    }
}
