//! The files of a release for one processor, and the archive of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use sha2::{Digest, Sha256};

use super::{Copy, bom, files, run_all, sums};
use crate::targets::Target;

/// Where each shell looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/emmclab"),
    ("zsh", "share/zsh/site-functions/_emmclab"),
    ("fish", "share/fish/vendor_completions.d/emmclab.fish"),
];

/// Files of the repository that go along.
const DOCUMENTS: [&str; 5] = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The lower-case SHA-256.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Creates `bin`, `share` and the documents as below a prefix.
pub(super) fn tree(copy: &Copy, target: &Target, binary: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("emmclab-{}-{}", copy.version, target.triple);
    let tree = copy.target.join("trees").join(&name);
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let man = tree.join("share/man/man1");
    let documents = tree.join("share/doc/emmclab");
    for folder in [&tree.join("bin"), &man, &documents] {
        fs::create_dir_all(folder)?;
    }
    fs::copy(binary, tree.join("bin/emmclab"))?;
    run_all(target.run(binary).arg("man").arg(&man))?;
    for (shell, place) in COMPLETIONS {
        let path = tree.join(place);
        fs::create_dir_all(path.parent().context("a completion without a folder")?)?;
        let output = target.run(binary).args(["completions", shell]).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success() && !output.stdout.is_empty(), "completions {shell}: {}", output.status);
        fs::write(path, output.stdout)?;
    }
    for name in DOCUMENTS {
        fs::copy(copy.source.join(name), documents.join(name)).with_context(|| name.to_owned())?;
    }
    let parts = bom::parts(&copy.source, target)?;
    let bundled = copy.source.join("crates/emmc-report/assets/LICENSES.txt");
    fs::write(documents.join("LICENSES-THIRD-PARTY.txt"), bom::licences(&parts, target, &bundled)?)?;
    fs::write(documents.join("emmclab.cdx.json"), bom::cyclonedx(&parts, target, &copy.version, &copy.epoch)?)?;
    fs::write(tree.join("SHA256SUMS"), sums(&tree)?)?;
    set_modes(&tree)?;
    Ok(tree)
}

/// Independent of the user's umask.
fn set_modes(tree: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    for path in files(tree)? {
        set(&path, if path.ends_with("bin/emmclab") { 0o755 } else { 0o644 })?;
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(tree)) {
            set(folder, 0o755)?;
        }
    }
    Ok(())
}

/// gzip, because every board's tar supports it.
pub(super) fn pack(copy: &Copy, tree: &Path) -> anyhow::Result<()> {
    let name = tree.file_name().context("a tree without a name")?.to_string_lossy().into_owned();
    let archive = copy.out.join(format!("{name}.tar"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--format=ustar", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", copy.epoch)).arg("-cf").arg(&archive);
    run_all(tar.arg("-C").arg(tree.parent().context("a tree without a folder")?).arg(&name))?;
    run_all(Command::new("gzip").args(["--no-name", "--best", "--force"]).arg(&archive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_sha256() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }
}
