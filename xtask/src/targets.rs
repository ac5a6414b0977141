//! The processors that emmclab is built for, and the tools of this machine to build for each and to run the result.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// One processor with the way to a static binary for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// What users call it.
    pub(crate) name: &'static str,
    /// What Rust calls it. glibc for the last two: see docs/packages.md.
    pub(crate) triple: &'static str,
    /// What Debian calls it.
    pub(crate) debian: &'static str,
    linker: &'static str,
    /// What QEMU calls it.
    qemu: &'static str,
    /// The Debian packages of linker and emulator.
    packages: &'static str,
}

/// All of them; the first is the one most people build on.
pub(crate) const TARGETS: [Target; 4] = [
    Target {
        name: "x86_64",
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        linker: RUST_LLD,
        qemu: "x86_64",
        packages: "qemu-user-static",
    },
    Target {
        name: "aarch64",
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
        linker: RUST_LLD,
        qemu: "aarch64",
        packages: "qemu-user-static",
    },
    Target {
        name: "armv7",
        triple: "armv7-unknown-linux-gnueabihf",
        debian: "armhf",
        linker: "arm-linux-gnueabihf-gcc",
        qemu: "arm",
        packages: "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user-static",
    },
    Target {
        name: "riscv64",
        triple: "riscv64gc-unknown-linux-gnu",
        debian: "riscv64",
        linker: "riscv64-linux-gnu-gcc",
        qemu: "riscv64",
        packages: "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user-static",
    },
];

/// The quickest build: without the optimisations of the workspace's tests, and without line numbers.
pub(crate) const QUICK: [&str; 14] = [
    "--config",
    "profile.dev.debug=false",
    "--config",
    "profile.dev.package.emmc-card.opt-level=0",
    "--config",
    "profile.dev.package.emmc-host.opt-level=0",
    "--config",
    "profile.dev.package.emmc-port.opt-level=0",
    "--config",
    "profile.dev.package.emmc-regs.opt-level=0",
    "--config",
    "profile.dev.package.emmc-trace.opt-level=0",
    "--config",
    "profile.dev.package.emmc-workload.opt-level=0",
];

/// Comes with every Rust toolchain and links musl's static binaries for all processors.
const RUST_LLD: &str = "rust-lld";

/// The targets of these names, or those of `all` where none is named.
pub(crate) fn named(names: &[&str], all: &'static [Target]) -> anyhow::Result<Vec<Target>> {
    let one = |name: &&str| {
        let known = || TARGETS.map(|target| target.name).join(", ");
        let found = TARGETS.iter().find(|target| target.name == *name);
        found.copied().with_context(|| format!("{name:?} is no target; expected one of {}", known()))
    };
    if names.is_empty() { Ok(all.to_vec()) } else { names.iter().map(one).collect() }
}

impl Target {
    /// Why it cannot be built here.
    pub(crate) fn missing_to_build(&self) -> Option<String> {
        let libraries = output("rustc", &["--print", "target-libdir", "--target", self.triple]).unwrap_or_default();
        if !Path::new(libraries.trim()).is_dir() {
            return Some(format!("no standard library for {} (rustup target add {0})", self.triple));
        }
        (self.linker != RUST_LLD && !runs(self.linker)).then(|| format!("no {} ({})", self.linker, self.installation()))
    }

    /// The reason why the build cannot run here.
    pub(crate) fn missing_to_run(&self) -> Option<String> {
        let is_missing = !self.is_native() && self.emulator().is_none();
        is_missing.then(|| format!("no qemu-{} ({})", self.qemu, self.installation()))
    }

    fn installation(&self) -> String {
        format!("apt-get install {}", self.packages)
    }

    /// Debian 12 has the one name, Debian 13 the other.
    fn emulator(&self) -> Option<String> {
        let names = ["-static", ""].map(|end| format!("qemu-{}{end}", self.qemu));
        names.into_iter().find(|name| runs(name))
    }

    fn is_native(&self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// `cargo build --target` of this; `flags` are for the compiler.
    pub(crate) fn cargo_build(&self, flags: &str) -> Command {
        let mut command = Command::new("cargo");
        let upper = self.triple.to_uppercase().replace('-', "_");
        let flags = format!("-C target-feature=+crt-static {} {flags}", self.driver_flags());
        command.args(["build", "--locked", "--quiet", "--package", "emmclab", "--target", self.triple]);
        command.env(format!("CARGO_TARGET_{upper}_LINKER"), self.linker).env("RUSTFLAGS", flags.trim());
        command
    }

    /// Has gcc call the linker that comes with Rust. GNU's one makes static ARM binaries that crash before `main` if
    /// they have more than 16 MiB of code: glibc's functions that choose an implementation at start (`memchr`) are
    /// called at wrong addresses.
    fn driver_flags(&self) -> String {
        let libraries = output("rustc", &["--print", "target-libdir"]).unwrap_or_default();
        let folder = Path::new(libraries.trim()).with_file_name("bin").join("gcc-ld");
        if self.linker == RUST_LLD || !folder.is_dir() {
            return String::new();
        }
        format!("-C link-arg=-fuse-ld=lld -C link-arg=-B{}", folder.display())
    }

    /// Linker options for a smaller binary: equal functions are stored once. Only where no gcc stands between.
    pub(crate) fn small_links(&self) -> &'static str {
        if self.linker == RUST_LLD { "-C link-arg=--icf=all" } else { "" }
    }

    /// Runs the build: directly, or in qemu.
    pub(crate) fn run(&self, binary: &Path) -> Command {
        if self.is_native() {
            return Command::new(binary);
        }
        let mut command = Command::new(self.emulator().unwrap_or_else(|| format!("qemu-{}", self.qemu)));
        command.arg(binary);
        command
    }
}

/// What a program prints.
pub(crate) fn output(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new(program).args(args).stderr(Stdio::inherit()).output().with_context(|| program.to_owned())?;
    ensure!(output.status.success(), "{program} {}: {}", args.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?)
}

fn runs(program: &str) -> bool {
    let status = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gcc_calls_the_linker_of_rust() {
        let flags = |name: &str| named(&[name], &TARGETS).unwrap()[0].driver_flags();
        assert_eq!(flags("aarch64"), "");
        for name in ["armv7", "riscv64"] {
            let flags = flags(name);
            let folder = flags.strip_prefix("-C link-arg=-fuse-ld=lld -C link-arg=-B").unwrap();
            assert!(Path::new(folder).join("ld.lld").is_file(), "{folder}");
        }
    }

    #[test]
    fn targets_are_found_by_name() {
        let names = |found: Vec<Target>| found.iter().map(|target| target.name).collect::<Vec<_>>();
        assert_eq!(names(named(&[], &TARGETS[1..]).unwrap()), ["aarch64", "armv7", "riscv64"]);
        assert_eq!(names(named(&["armv7", "x86_64"], &TARGETS).unwrap()), ["armv7", "x86_64"]);
        let error = named(&["mips"], &TARGETS).unwrap_err().to_string();
        assert!(error.contains("\"mips\" is no target") && error.contains("riscv64"), "{error}");
    }
}
