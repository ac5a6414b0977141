//! `cargo xtask guest run`: one script in one guest.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::guest::machine::{Machine, Setup, Show, last_lines};
use crate::guest::{packages, rig};

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) script: PathBuf,
    pub(crate) memory_mib: u32,
    pub(crate) console: bool,
    /// Where the files go that the script leaves in /out.
    pub(crate) out: Option<PathBuf>,
    pub(crate) qemu: Vec<OsString>,
}

/// Enough for the whole first file system and the tools.
const MEMORY_MIB: u32 = 512;

/// Runs it; the script's exit status.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<u8> {
    let options = options(args)?;
    let rig = rig::ready()?;
    let script = fs::read_to_string(&options.script).with_context(|| options.script.display().to_string())?;
    let folder = Folder::new()?;
    let machine = Machine::start(&Setup {
        rig: &rig,
        folder: &folder.path,
        script: &script,
        memory_mib: options.memory_mib,
        qemu: &options.qemu,
        show: if options.console { Show::Console } else { Show::Output },
    })?;
    let outcome = machine.finish()?;
    if let Some(out) = &options.out {
        unpack(&folder.path.join("files.tar"), out)?;
    }
    let Some(status) = outcome.status else {
        bail!("the guest stopped before the script ended:\n{}", last_lines(&folder.path.join("console")));
    };
    Ok(status)
}

fn options(args: &[&str]) -> anyhow::Result<Options> {
    let mut options = Options { memory_mib: MEMORY_MIB, ..Options::default() };
    let mut script = None;
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg}: expected a value after it"));
        match arg {
            "--memory" => options.memory_mib = value()?.parse().context("--memory: expected a number of MiB")?,
            "--out" => options.out = Some(value()?.into()),
            "--console" => options.console = true,
            "--" => options.qemu = args.by_ref().map(OsString::from).collect(),
            _ if arg.starts_with('-') => bail!("guest run: unknown option {arg}"),
            _ => ensure!(script.replace(PathBuf::from(arg)).is_none(), "guest run: a second script, {arg}"),
        }
    }
    options.script = script.context("guest run: expected a script")?;
    Ok(options)
}

/// Unpacks what the guest left.
fn unpack(files: &Path, out: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    if fs::metadata(files).is_ok_and(|metadata| metadata.len() > 0) {
        packages::run(Command::new("tar").arg("--extract").arg("--file").arg(files).arg("--directory").arg(out))?;
    }
    Ok(())
}

/// A folder for one run, removed at its end.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    /// A new one, with a short name: sockets in it may have only 108 bytes.
    pub(crate) fn new() -> anyhow::Result<Self> {
        for number in 0..1000 {
            let path = std::env::temp_dir().join(format!("emmclab-guest-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
        }
        bail!("{} is full of folders of earlier runs", std::env::temp_dir().display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("guest: {}: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let found = options(&["--memory", "256", "a.sh", "--", "-device", "x"]).unwrap();
        let expected = Options {
            script: "a.sh".into(),
            memory_mib: 256,
            qemu: vec!["-device".into(), "x".into()],
            ..Options::default()
        };
        assert_eq!(found, expected);
        for bad in [&["a", "b"][..], &["--memory"], &["--memory", "x", "a"], &["--other", "a"], &[]] {
            assert!(options(bad).is_err(), "{bad:?}");
        }
    }
}
