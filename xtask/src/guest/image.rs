//! What the guest boots from: a kernel that needs no unpacking, and a first file system with everything in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::guest::cpio::Archive;
use crate::guest::packages;
use crate::guest::tree::Tree;

/// The packages of the guest; xz-utils, zstd and kmod are used to build it.
pub(crate) const PACKAGES: [&str; 19] = [
    "linux-image-amd64",
    "busybox-static",
    "mmc-utils",
    "fio",
    "flashbench",
    "e2fsprogs",
    "f2fs-tools",
    "util-linux",
    "fdisk",
    "trace-cmd",
    "dash",
    "coreutils",
    "kmod",
    "libc6",
    "xz-utils",
    "zstd",
    "cryptsetup-bin",
    "dmsetup",
    "lvm2",
];

/// Packages that not every mirror has.
pub(crate) const OPTIONAL: [&str; 1] = ["iozone3"];

/// The programs of the guest beside busybox's.
const PROGRAMS: [&str; 34] = [
    "usr/bin/dash",
    // The one of busybox leaves out oflag=direct for part of its writes.
    "usr/bin/dd",
    "usr/bin/mmc",
    "usr/bin/fio",
    "usr/bin/flashbench",
    "usr/bin/flashbench-erase",
    "usr/bin/iozone",
    "usr/bin/trace-cmd",
    "usr/bin/lsattr",
    "usr/bin/chattr",
    "usr/bin/findmnt",
    "usr/bin/lsblk",
    "usr/sbin/badblocks",
    "usr/sbin/debugfs",
    "usr/sbin/dumpe2fs",
    "usr/sbin/e2fsck",
    "usr/sbin/e2image",
    "usr/sbin/filefrag",
    "usr/sbin/fsck.ext4",
    "usr/sbin/mke2fs",
    "usr/sbin/mkfs.ext4",
    "usr/sbin/resize2fs",
    "usr/sbin/tune2fs",
    "usr/sbin/dump.f2fs",
    "usr/sbin/f2fs_io",
    "usr/sbin/fsck.f2fs",
    "usr/sbin/mkfs.f2fs",
    "usr/sbin/blkdiscard",
    "usr/sbin/blkzone",
    "usr/sbin/blockdev",
    "usr/sbin/fstrim",
    "usr/sbin/sfdisk",
    "usr/sbin/wipefs",
    "usr/sbin/blkid",
];

/// Kernel modules that the init script loads, and those that the kernel requests itself.
const MODULES: [&str; 11] = [
    "mmc_core",
    "mmc_block",
    "cqhci",
    "sdhci",
    "sdhci-pci",
    "crc32c_generic",
    "crc32c-intel",
    "crc32_generic",
    "crc32-pclmul",
    "ext4",
    "f2fs",
];

/// Programs and modules of scripts that contain one of [`MAPPER`]: in an archive of their own, because each boot
/// unpacks the whole first file system.
pub(crate) const MAPPER: [&str; 2] = ["cryptsetup ", "lvm "];
const MAPPER_PROGRAMS: [&str; 3] = ["usr/sbin/cryptsetup", "usr/sbin/dmsetup", "usr/sbin/lvm"];
const MAPPER_MODULES: [&str; 8] =
    ["dm-mod", "dm-crypt", "algif_skcipher", "xts", "aesni-intel", "sha256-ssse3", "md-mod", "raid1"];

/// What must change when this builder changes.
pub(crate) const RECIPE: &str = concat!(include_str!("image.rs"), include_str!("cpio.rs"));

/// Writes the kernel, the first file system and the archive `mapper` of the packages in `tree`.
pub(crate) fn build(tree: &Tree, dir: &Path) -> anyhow::Result<()> {
    let version = kernel_version(tree)?;
    fs::write(dir.join("kernel"), uncompressed_kernel(tree, &version)?)?;
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys", "tmp", "run", "mnt", "out", "root", "var/lock", "usr/share"] {
        archive.folder(folder);
    }
    // The kernel opens it for init before anything is mounted.
    archive.character_device("dev/console", (5, 1));
    archive.file("etc/passwd", false, b"root::0:0:root:/root:/bin/sh\n");
    archive.file("etc/group", false, b"root:x:0:\n");
    archive.link("etc/mtab", "/proc/self/mounts");
    archive.link("lib", "usr/lib");
    archive.link("lib64", "usr/lib64");
    busybox(tree, &mut archive)?;
    programs(tree, &PROGRAMS, &mut archive)?;
    archive.file("etc/mke2fs.conf", false, &fs::read(tree.path("etc/mke2fs.conf"))?);
    modules(tree, &version, (&[], &MODULES), &mut archive)?;
    let mut mapper = Archive::default();
    mapper.folder("run/lvm");
    mapper.folder("run/cryptsetup");
    mapper.folder("etc/lvm");
    programs(tree, &MAPPER_PROGRAMS, &mut mapper)?;
    modules(tree, &version, (&MODULES, &MAPPER_MODULES), &mut mapper)?;
    for (name, archive) in [("initramfs", archive), ("mapper", mapper)] {
        fs::write(dir.join(name), archive.finish()).with_context(|| name.to_owned())?;
    }
    Ok(())
}

fn kernel_version(tree: &Tree) -> anyhow::Result<String> {
    let folder = tree.path("usr/lib/modules");
    let mut versions: Vec<String> = fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    ensure!(versions.len() == 1, "{}: expected the modules of one kernel, found {versions:?}", folder.display());
    versions.pop().context("no kernel")
}

/// The kernel as an ELF file, which QEMU starts by its PVH entry: unpacking it inside an emulated machine takes
/// seconds.
///
/// Source: Linux, `Documentation/arch/x86/boot.rst`, fields `setup_sects`, `payload_offset` and `payload_length`; the
/// payload ends with the unpacked size in four bytes.
fn uncompressed_kernel(tree: &Tree, version: &str) -> anyhow::Result<Vec<u8>> {
    let path = tree.path(&format!("boot/vmlinuz-{version}"));
    let image = fs::read(&path).with_context(|| path.display().to_string())?;
    let word =
        |at: usize| image.get(at..at + 4).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    ensure!(image.get(0x202..0x206) == Some(b"HdrS"), "{}: not a kernel image", path.display());
    let start = (usize::from(image[0x1f1]) + 1) * 512 + word(0x248) as usize;
    let payload =
        image.get(start..(start + word(0x24c) as usize).saturating_sub(4)).context("the payload is cut off")?;
    let unpacker = match payload.get(..4) {
        Some([0x28, 0xb5, 0x2f, 0xfd]) => "usr/bin/zstd",
        Some([0xfd, b'7', b'z', b'X']) => "usr/bin/xz",
        other => bail!("{}: packed in an unknown way: {other:02x?}", path.display()),
    };
    let packed = tree.path("kernel.packed");
    fs::write(&packed, payload)?;
    let kernel = tree.output(unpacker, &[Path::new("-dc"), &packed])?;
    fs::remove_file(&packed)?;
    ensure!(kernel.starts_with(b"\x7fELF"), "{}: holds no ELF file", path.display());
    Ok(kernel)
}

/// busybox under each of its names, in /bin: the full programs in /usr come first.
fn busybox(tree: &Tree, archive: &mut Archive) -> anyhow::Result<()> {
    let path = tree.path("usr/bin/busybox");
    let output = std::process::Command::new(&path).arg("--list").output();
    let names = output.with_context(|| format!("cannot run {}", path.display()))?.stdout;
    archive.file("bin/busybox", true, &fs::read(&path)?);
    for name in String::from_utf8_lossy(&names).lines().filter(|name| !["busybox", "sh"].contains(name)) {
        archive.link(&format!("bin/{name}"), "busybox");
    }
    // busybox's own shell prefers busybox's programs to those on the path.
    archive.link("bin/sh", "/usr/bin/dash");
    // The kernel's own name for the loader of its modules.
    archive.link("sbin/modprobe", "/bin/busybox");
    Ok(())
}

fn programs(tree: &Tree, names: &[&str], archive: &mut Archive) -> anyhow::Result<()> {
    let mut libraries = BTreeSet::new();
    for &program in names {
        let path = tree.path(program);
        if !path.exists() {
            ensure!(program.contains("iozone"), "{program}: in none of the packages");
            continue;
        }
        archive.file(program, true, &fs::read(&path)?);
        libraries.append(&mut tree.libraries_of(program)?);
    }
    for path in libraries {
        let name = path.file_name().and_then(|name| name.to_str()).context("a library without a name")?;
        let folder = if name.starts_with("ld-linux") { "usr/lib64" } else { "usr/lib/x86_64-linux-gnu" };
        archive.file(&format!("{folder}/{name}"), true, &fs::read(&path)?);
    }
    Ok(())
}

/// The modules, unpacked, with all they need: those of `new` and not of `known`, in the lists both.
fn modules(tree: &Tree, version: &str, (known, new): (&[&str], &[&str]), archive: &mut Archive) -> anyhow::Result<()> {
    let lib = tree.path("lib");
    if fs::symlink_metadata(&lib).is_err() {
        std::os::unix::fs::symlink("usr/lib", &lib)?;
    }
    packages::run(tree.program("usr/sbin/depmod")?.arg("--basedir").arg(&tree.dir).arg(version))?;
    let folder = tree.path("usr/lib/modules").join(version);
    let listed = fs::read_to_string(folder.join("modules.dep"))?;
    let needs = dependencies(&listed);
    let with_needs = |names: &[&str]| {
        let mut wanted: Vec<&str> = Vec::new();
        for name in names {
            let is_it = |path: &&&str| module_name(path) == name.replace('-', "_");
            let found = needs.keys().find(is_it);
            wanted.push(found.with_context(|| format!("module {name}: not in the kernel's package"))?);
        }
        let mut taken = BTreeSet::new();
        while let Some(path) = wanted.pop() {
            if taken.insert(path) {
                wanted.extend(needs.get(path).into_iter().flatten());
            }
        }
        anyhow::Ok(taken)
    };
    let present = with_needs(known)?;
    let taken: BTreeSet<&str> = present.union(&with_needs(new)?).copied().collect();
    let mut list = String::new();
    for path in &taken {
        if !present.contains(path) {
            let unpacked = tree.output("usr/bin/xz", &[Path::new("-dc"), &folder.join(path)])?;
            archive.file(&format!("usr/lib/modules/{version}/{}", plain(path)), false, &unpacked);
        }
        let needed: Vec<&str> = needs[path].iter().map(|path| plain(path)).collect();
        list += &format!("{}: {}\n", plain(path), needed.join(" "));
    }
    archive.file(&format!("usr/lib/modules/{version}/modules.dep"), false, list.as_bytes());
    let names: BTreeSet<String> = taken.iter().map(|path| module_name(path)).collect();
    for (file, name_at) in [("modules.alias", 2), ("modules.symbols", 2), ("modules.softdep", 1)] {
        let text = fs::read_to_string(folder.join(file))?;
        let ours =
            |line: &&str| line.split(' ').nth(name_at).is_some_and(|name| names.contains(&name.replace('-', "_")));
        let lines: Vec<&str> = text.lines().filter(ours).collect();
        archive.file(&format!("usr/lib/modules/{version}/{file}"), false, (lines.join("\n") + "\n").as_bytes());
    }
    Ok(())
}

/// Each module's path and the paths of those it needs, from `modules.dep`.
fn dependencies(text: &str) -> BTreeMap<&str, Vec<&str>> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, needs)| (path, needs.split_whitespace().collect()))
        .collect()
}

/// The name that a module is loaded by.
fn module_name(path: &str) -> String {
    let file = PathBuf::from(plain(path));
    file.file_stem().map(|name| name.to_string_lossy().replace('-', "_")).unwrap_or_default()
}

fn plain(path: &str) -> &str {
    path.strip_suffix(".xz").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_by_name() {
        let needs =
            dependencies("kernel/a/sdhci-pci.ko.xz: kernel/a/sdhci.ko.xz kernel/b/mmc_core.ko.xz\nkernel/b/x.ko:\n");
        assert_eq!(needs["kernel/a/sdhci-pci.ko.xz"], ["kernel/a/sdhci.ko.xz", "kernel/b/mmc_core.ko.xz"]);
        assert_eq!(needs["kernel/b/x.ko"], [] as [&str; 0]);
        assert_eq!(module_name("kernel/a/sdhci-pci.ko.xz"), "sdhci_pci");
    }
}
