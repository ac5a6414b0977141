//! The built parts of the rig in `target/guest`: built on demand, kept until a package or the builder changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use emmc_lab::guest::BOOT;
use emmc_lab::kernel::{INITRAMFS, Kernel, LINUX};
use sha2::{Digest, Sha256};

use crate::guest::cpio::Archive;
use crate::guest::image;
use crate::guest::machine::append;
use crate::guest::packages::{Apt, Choice, RELEASE};
use crate::guest::qemu::Qemu;
use crate::guest::tree::Tree;
use crate::guest::{uboot, uml};
use crate::metadata;

/// What a machine is started with.
pub(crate) struct Rig {
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: PathBuf,
    /// The archive for scripts that use the device mapper.
    pub(crate) mapper: PathBuf,
    pub(crate) qemu: Qemu,
}

/// Options of the build.
#[derive(Debug, Default)]
pub(crate) struct BuildOptions<'a> {
    /// A mirror of Debian in place of the machine's own.
    pub(crate) mirror: Option<&'a str>,
    /// Unpacks a newer QEMU locally if the machine has no suitable one.
    pub(crate) fetch_qemu: bool,
    /// Builds a User-Mode Linux for simulated time; QEMU is then not needed.
    pub(crate) uml: bool,
    /// Builds U-Boot, as the firmware of a machine in QEMU.
    pub(crate) u_boot: bool,
    /// With `uml`: a folder that gets what `emmclab lab` needs.
    pub(crate) to: Option<&'a str>,
}

/// The built parts, each in a folder named after the key of its inputs.
#[derive(Clone, Copy)]
enum Part {
    Image,
    Qemu,
    UBoot,
    Uml,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Image => "image",
            Part::Qemu => "qemu",
            Part::UBoot => "u-boot",
            Part::Uml => "uml",
        }
    }
}

/// Builds parts that are missing or out of date.
pub(crate) fn build(options: &BuildOptions) -> anyhow::Result<()> {
    let start = Instant::now();
    let folder = folder()?;
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let apt = Apt::new(&folder.join("apt"), options.mirror)?;
    println!("guest: asking for the newest packages");
    apt.update()?;
    let mut names = image::PACKAGES.to_vec();
    for name in image::OPTIONAL {
        if apt.has(name) {
            names.push(name);
        } else {
            println!("guest: SKIPPED: the mirror has no {name}");
        }
    }
    let choice = apt.choose(RELEASE, &names)?;
    make(&folder, Part::Image, &key(&choice, image::RECIPE), |dir| {
        println!("guest: building the image of {} packages", choice.files.len());
        let tree = Tree::new(&dir.join("tree"));
        apt.unpack(&choice, &tree.dir)?;
        image::build(&tree, dir)?;
        fs::write(dir.join("packages"), choice.files.join("\n") + "\n")?;
        fs::write(dir.join("recipe"), digest(&[image::RECIPE]))?;
        fs::remove_dir_all(&tree.dir).context("the tree of packages")
    })?;
    if options.fetch_qemu && Qemu::of_system().is_err() {
        let choice = apt.choose(&format!("{RELEASE}-backports"), &["qemu-system-x86"])?;
        make(&folder, Part::Qemu, &key(&choice, ""), |dir| {
            println!("guest: making a tree of QEMU of {} packages", choice.files.len());
            apt.unpack(&choice, &dir.join("tree"))
        })?;
    }
    if options.u_boot {
        build_u_boot(&folder, &apt)?;
    }
    if options.uml {
        build_uml(&folder, &apt)?;
        let kernel = uml_ready()?;
        if let Some(to) = options.to {
            fs::create_dir_all(to).with_context(|| to.to_owned())?;
            for (file, name) in [(&kernel.linux, LINUX), (&kernel.initramfs, INITRAMFS)] {
                fs::copy(file, Path::new(to).join(name)).with_context(|| format!("{to}/{name}"))?;
            }
        }
        println!("guest: built in {} ({:.1} s)", folder.display(), start.elapsed().as_secs_f64());
        return Ok(());
    }
    let rig = ready()?;
    println!("guest: built in {} ({:.1} s); {}", folder.display(), start.elapsed().as_secs_f64(), rig.qemu.describe()?);
    Ok(())
}

/// The kernel of User-Mode Linux. The source is removed afterwards.
fn build_uml(folder: &Path, apt: &Apt) -> anyhow::Result<()> {
    let choice = apt.choose(RELEASE, &uml::PACKAGES)?;
    let source = choice.files.iter().find(|file| file.starts_with("linux-source")).context("the kernel's source")?;
    make(folder, Part::Uml, &key(&choice, uml::RECIPE), |dir| {
        uml::check_host()?;
        println!("guest: building User-Mode Linux of {source}, which takes minutes");
        let tree = dir.join("tree");
        apt.unpack(&choice, &tree)?;
        uml::build(&tree, &tree, &dir.join("linux"))?;
        fs::write(dir.join("recipe"), digest(&[uml::RECIPE]))?;
        fs::remove_dir_all(&tree).context("the kernel's source")
    })
}

/// U-Boot. The source is removed afterwards.
fn build_u_boot(folder: &Path, apt: &Apt) -> anyhow::Result<()> {
    let choice = apt.choose_source(RELEASE, uboot::build::PACKAGE)?;
    make(folder, Part::UBoot, &key(&choice, uboot::build::RECIPE), |dir| {
        let source = apt.source(&choice)?;
        println!("guest: building U-Boot of {}, which takes a minute", choice.files.join(", "));
        let work = dir.join("source");
        fs::create_dir(&work)?;
        uboot::build::build(&source, &work, &dir.join("rom"))?;
        fs::write(dir.join("recipe"), digest(&[uboot::build::RECIPE]))?;
        fs::remove_dir_all(&work).context("U-Boot's source")
    })
}

/// The image of U-Boot, or how to build it.
pub(crate) fn u_boot_ready() -> anyhow::Result<PathBuf> {
    let built = current(&folder()?, Part::UBoot);
    let is_new = |dir: &Path| fs::read_to_string(dir.join("recipe")).ok() == Some(digest(&[uboot::build::RECIPE]));
    match built.filter(|dir| is_new(dir)) {
        Some(dir) => Ok(dir.join("rom")),
        None => bail!("U-Boot is not built: cargo xtask guest build --u-boot"),
    }
}

/// The kernel of User-Mode Linux and its first file system, or how to build them.
pub(crate) fn uml_ready() -> anyhow::Result<Kernel> {
    let folder = folder()?;
    let (Some(image), Some(uml)) = (current(&folder, Part::Image), current(&folder, Part::Uml)) else {
        bail!("the guest is not built: cargo xtask guest build --uml");
    };
    let is_new = |dir: &Path, recipe| fs::read_to_string(dir.join("recipe")).ok() == Some(digest(&[recipe]));
    if !is_new(&image, image::RECIPE) || !is_new(&uml, uml::RECIPE) {
        bail!("the guest was built by another version of its builder: cargo xtask guest build --uml");
    }
    lab(&folder, &image, &uml)
}

/// The folder of the lab: the kernel, and a first file system whose first process continues in a folder of its host.
/// It is made again when one of the parts is another.
fn lab(folder: &Path, image: &Path, uml: &Path) -> anyhow::Result<Kernel> {
    let names = [image, uml].map(|part| part.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let recipe = digest(&[&names[0], &names[1], BOOT]);
    let lab = folder.join("lab");
    if fs::read_to_string(lab.join("recipe")).ok().as_ref() != Some(&recipe) {
        let new = folder.join(format!("unfinished-lab-{}", std::process::id()));
        fs::create_dir_all(&new).with_context(|| new.display().to_string())?;
        fs::copy(uml.join("linux"), new.join(LINUX)).context("the kernel")?;
        let mut archive = Archive::default();
        archive.folder("host");
        archive.file("init", true, BOOT.as_bytes());
        append(&image.join("initramfs"), archive, &new.join(INITRAMFS))?;
        fs::write(new.join("recipe"), recipe)?;
        if lab.exists() {
            fs::remove_dir_all(&lab).context("the old folder of the lab")?;
        }
        fs::rename(&new, &lab).with_context(|| lab.display().to_string())?;
    }
    Ok(Kernel::in_folder(&lab))
}

/// The built rig, or how to build it.
pub(crate) fn ready() -> anyhow::Result<Rig> {
    let folder = folder()?;
    let Some(image) = current(&folder, Part::Image) else {
        bail!("the guest is not built: cargo xtask guest build");
    };
    if fs::read_to_string(image.join("recipe")).ok() != Some(digest(&[image::RECIPE])) {
        bail!("the guest was built by another version of its builder: cargo xtask guest build");
    }
    let qemu = match (Qemu::of_system(), current(&folder, Part::Qemu)) {
        (Ok(qemu), _) => qemu,
        (Err(_), Some(dir)) => Qemu::of_tree(Tree::new(&dir.join("tree"))),
        (Err(error), None) => return Err(error),
    };
    let [kernel, initramfs, mapper] = ["kernel", "initramfs", "mapper"].map(|name| image.join(name));
    Ok(Rig { kernel, initramfs, mapper, qemu })
}

/// Where everything is kept.
fn folder() -> anyhow::Result<PathBuf> {
    Ok(metadata::workspace()?.root.join("target/guest"))
}

/// Builds a part under a temporary name, then renames it: existing parts are complete.
fn make(folder: &Path, part: Part, key: &str, work: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let name = format!("{}-{key}", part.name());
    let target = folder.join(&name);
    if !target.exists() {
        let unfinished = folder.join(format!("unfinished-{name}-{}", std::process::id()));
        fs::create_dir(&unfinished).with_context(|| unfinished.display().to_string())?;
        if let Err(error) = work(&unfinished) {
            fs::remove_dir_all(&unfinished).context("an unfinished part")?;
            return Err(error);
        }
        // Another process may have been faster; then its part is used.
        if fs::rename(&unfinished, &target).is_err() {
            fs::remove_dir_all(&unfinished).context("an unfinished part")?;
        }
    }
    let pointer = folder.join(part.name());
    let new = folder.join(format!("{}.new-{}", part.name(), std::process::id()));
    fs::write(&new, &name)?;
    fs::rename(&new, &pointer).with_context(|| pointer.display().to_string())?;
    for entry in fs::read_dir(folder)?.flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        if other.starts_with(&format!("{}-", part.name())) && other != name {
            fs::remove_dir_all(entry.path()).with_context(|| entry.path().display().to_string())?;
        }
    }
    Ok(())
}

fn current(folder: &Path, part: Part) -> Option<PathBuf> {
    let name = fs::read_to_string(folder.join(part.name())).ok()?;
    Some(folder.join(name)).filter(|dir| dir.is_dir())
}

fn key(choice: &Choice, recipe: &str) -> String {
    let files = choice.files.join("\n");
    digest(&[&files, recipe])[..16].to_string()
}

fn digest(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
