//! Trees of Debian packages beside the system's own, unpacked by this machine's apt without root.
//!
//! apt gets its own folders and an empty list of installed packages, so it resolves, checks signatures and downloads as
//! on a new machine and changes nothing on this one. No maintainer script runs: packages are only unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// The release of guest and QEMU, independent of the machine's own release: the same guest everywhere.
pub(crate) const RELEASE: &str = "trixie";

/// A private apt.
pub(crate) struct Apt {
    dir: PathBuf,
}

/// Packages that apt has chosen: the names of their files, in which their versions are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    names: Vec<String>,
    release: String,
    pub(crate) files: Vec<String>,
}

impl Choice {
    /// From what `--print-uris` prints.
    fn of_uris(names: &[&str], release: &str, text: &str) -> anyhow::Result<Self> {
        // 'URI' FILE SIZE HASH
        let file = |line: &str| Some(line.strip_prefix('\'')?.split(' ').nth(1)?.to_string());
        let mut files: Vec<String> = text.lines().filter_map(file).collect();
        files.sort();
        ensure!(!files.is_empty(), "apt-get chose no package for {names:?}");
        Ok(Self { names: names.iter().map(ToString::to_string).collect(), release: release.into(), files })
    }
}

impl Apt {
    /// Below `dir`, from `mirror`, or from where the machine's own Debian packages come from.
    pub(crate) fn new(dir: &Path, mirror: Option<&str>) -> anyhow::Result<Self> {
        let keyring = Path::new("/usr/share/keyrings/debian-archive-keyring.gpg");
        ensure!(keyring.exists(), "{}: missing; install the package debian-archive-keyring", keyring.display());
        let mirror = match mirror {
            Some(mirror) => mirror.to_string(),
            None => own_mirror()?,
        };
        for folder in ["lists/partial", "cache/archives/partial", "none/partial"] {
            fs::create_dir_all(dir.join(folder)).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        let line = |suite: &str, components: &str| {
            format!("deb [arch=amd64 signed-by={}] {mirror} {suite} {components}\n", keyring.display())
        };
        let sources = format!("deb-src [signed-by={}] {mirror} {RELEASE} main\n", keyring.display());
        // iozone is in non-free; everything else in main.
        let sources = line(RELEASE, "main non-free") + &line(&format!("{RELEASE}-backports"), "main") + &sources;
        fs::write(dir.join("sources.list"), sources)?;
        fs::write(dir.join("status"), "")?;
        Ok(Self { dir: dir.to_path_buf() })
    }

    /// Asks the mirror for its newest lists.
    pub(crate) fn update(&self) -> anyhow::Result<()> {
        run(self.command("apt-get").args(["-qq", "update"])).context("the lists of packages")
    }

    /// The packages needed to install `names` from `release` on an empty machine.
    pub(crate) fn choose(&self, release: &str, names: &[&str]) -> anyhow::Result<Choice> {
        let mut command = self.command("apt-get");
        // apt prints what it would download, so it must not see earlier downloads.
        command.arg("-o").arg(format!("Dir::Cache::archives={}", self.dir.join("none").display()));
        command.args(["-qq", "--yes", "--print-uris", "--target-release", release, "install"]).args(names);
        let output = command.output().context("cannot run apt-get")?;
        ensure!(output.status.success(), "{names:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
        Choice::of_uris(names, release, &String::from_utf8_lossy(&output.stdout))
    }

    /// The files of a source package of `release`.
    pub(crate) fn choose_source(&self, release: &str, name: &str) -> anyhow::Result<Choice> {
        let mut command = self.command("apt-get");
        command.args(["-qq", "--yes", "--print-uris", "--only-source", "source"]).arg(format!("{name}/{release}"));
        let output = command.output().context("cannot run apt-get")?;
        ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
        Choice::of_uris(&[name], release, &String::from_utf8_lossy(&output.stdout))
    }

    /// Downloads the chosen source package; returns the file of its author's source.
    pub(crate) fn source(&self, choice: &Choice) -> anyhow::Result<PathBuf> {
        let upstream = choice.files.iter().find(|file| file.contains(".orig.tar.") && !file.ends_with(".asc"));
        let path = self.dir.join(upstream.context("a source package without its author's source")?);
        let mut command = self.command("apt-get");
        command.args(["-qq", "--yes", "--download-only", "--only-source", "source"]).current_dir(&self.dir);
        let names = choice.names.iter().map(|name| format!("{name}/{}", choice.release));
        // A mirror may lack another file of the package. What counts is this one, whose hash is in the signed lists.
        let fetched = run(command.args(names)).context("downloading a source package");
        if !path.exists() {
            fetched?;
        }
        Ok(path)
    }

    /// Whether there is such a package.
    pub(crate) fn has(&self, name: &str) -> bool {
        let output = self.command("apt-cache").args(["policy", name]).output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Candidate: "))
    }

    /// Downloads the chosen packages and unpacks them into a new `tree`.
    pub(crate) fn unpack(&self, choice: &Choice, tree: &Path) -> anyhow::Result<()> {
        let mut command = self.command("apt-get");
        command.args(["-qq", "--yes", "--download-only", "--target-release", &choice.release, "install"]);
        run(command.args(&choice.names)).context("downloading packages")?;
        if tree.exists() {
            fs::remove_dir_all(tree).with_context(|| format!("cannot empty {}", tree.display()))?;
        }
        fs::create_dir_all(tree)?;
        for file in &choice.files {
            let path = self.dir.join("cache/archives").join(file);
            run(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(tree))
                .with_context(|| format!("cannot unpack {}", path.display()))?;
        }
        Ok(())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, value) in [
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::Etc::sourceparts", "none"),
            ("Dir::Etc::preferencesparts", "none"),
            ("Dir::State", "."),
            ("Dir::State::lists", "lists"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
        ] {
            command.arg("-o").arg(format!("{name}={}", self.dir.join(value).display()));
        }
        for option in [
            "APT::Architecture=amd64",
            "APT::Install-Recommends=false",
            "APT::Sandbox::User=root",
            "APT::Keep-Downloaded-Packages=true",
            "Acquire::Languages=none",
            // Containers often have a hook that deletes downloaded packages.
            "DPkg::Post-Invoke=",
            "APT::Update::Post-Invoke=",
        ] {
            command.args(["-o", option]);
        }
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

/// Where this machine's Debian packages come from.
pub(crate) fn own_mirror() -> anyhow::Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(CREATED_BY) $(RELEASE) $(COMPONENT) $(REPO_URI)"])
        .output()
        .context("cannot run apt-get: the guest is built of Debian packages, with apt and dpkg")?;
    let targets = String::from_utf8_lossy(&output.stdout);
    find_mirror(&release, &targets)
}

fn find_mirror(os_release: &str, targets: &str) -> anyhow::Result<String> {
    let value = |key: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"')
    };
    let (id, codename) = (value("ID"), value("VERSION_CODENAME"));
    if id != "debian" {
        bail!("this is {id:?}, not Debian: name a mirror of Debian with --mirror URL (needs debian-archive-keyring)");
    }
    let wanted = format!("Packages {codename} main ");
    let found = targets.lines().find_map(|line| line.strip_prefix(&wanted));
    let found = found.with_context(|| format!("apt's sources name no mirror of {codename}: give --mirror URL"))?;
    Ok(found.to_string())
}

/// Runs a command; its output goes to standard error.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{program}: {}", output.status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_of_this_machine() {
        let debian = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        let targets = "DEP-11 bookworm main http://a/\nPackages other main http://b/\n\
                       Packages bookworm contrib http://c/\nPackages bookworm main http://d/debian/\n";
        assert_eq!(find_mirror(debian, targets).unwrap(), "http://d/debian/");
        assert!(find_mirror(debian, "").unwrap_err().to_string().contains("--mirror"));
        assert!(find_mirror("ID=ubuntu\n", targets).unwrap_err().to_string().contains("--mirror"));
    }
}
