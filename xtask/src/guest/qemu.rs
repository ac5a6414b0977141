//! The emulator: the machine's own if it is new enough, or a local tree with a newer one.

use std::process::Command;

use anyhow::{Context, bail, ensure};
use emmc_lab::machine::bound_to_us;

use crate::guest::tree::Tree;

/// The first release with a client for devices in other processes (`vfio-user-pci`).
const OLDEST: (u32, u32) = (10, 1);

const PROGRAM: &str = "qemu-system-x86_64";

/// A suitable emulator.
pub(crate) enum Qemu {
    /// Installed on the machine.
    System,
    /// In a tree of unpacked packages.
    Tree(Tree),
}

impl Qemu {
    /// The one of this machine, or the reason why it is not suitable and the package to install.
    pub(crate) fn of_system() -> anyhow::Result<Self> {
        let advice = "install Debian's qemu-system-x86 from trixie-backports or newer, or let \
                      `cargo xtask guest build --fetch-qemu` make a local tree of it";
        let output = Command::new(PROGRAM).arg("--version").output();
        let output = output.with_context(|| format!("no {PROGRAM}: {advice}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let found = version(&text).with_context(|| format!("{PROGRAM} --version says {text:?}"))?;
        let (major, minor) = OLDEST;
        ensure!(found >= OLDEST, "{PROGRAM} {}.{} is older than {major}.{minor}: {advice}", found.0, found.1);
        Ok(Self::System)
    }

    /// The one in `tree`.
    pub(crate) fn of_tree(tree: Tree) -> Self {
        Self::Tree(tree)
    }

    /// A command that ends with this process in every case.
    pub(crate) fn command(&self) -> anyhow::Result<Command> {
        match self {
            Qemu::System => Ok(bound_to_us(PROGRAM.as_ref())),
            Qemu::Tree(tree) => {
                let inner = tree.program(&format!("usr/bin/{PROGRAM}"))?;
                let mut command = bound_to_us(inner.get_program().as_ref());
                command.args(inner.get_args());
                for folder in ["usr/share/qemu", "usr/share/seabios"] {
                    command.arg("-L").arg(tree.path(folder));
                }
                Ok(command)
            }
        }
    }

    /// Its version, in words.
    pub(crate) fn describe(&self) -> anyhow::Result<String> {
        let output = self.command()?.arg("--version").output().context("cannot run QEMU")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let Some(first) = text.lines().next().filter(|_| output.status.success()) else {
            bail!("QEMU does not start: {}", String::from_utf8_lossy(&output.stderr).trim());
        };
        Ok(first.to_string())
    }
}

fn version(text: &str) -> Option<(u32, u32)> {
    let rest = text.split_once("version ")?.1;
    let mut numbers = rest.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_parsed() {
        assert_eq!(version("QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1~bpo13+1)\nCopyright"), Some((11, 1)));
        assert_eq!(version("QEMU emulator version 7.2.22 (Debian)"), Some((7, 2)));
        assert_eq!(version("version x"), None);
        assert!(version("QEMU emulator version 10.0.8") < Some(OLDEST));
    }
}
