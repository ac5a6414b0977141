//! The scripts that every guest starts with, and the files of a run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::LabError;

/// The first process of a User-Mode Linux, in its first file system: everything else is in the run's folder.
pub const BOOT: &str = include_str!("guest/boot.sh");
/// The first process of the guest: runs /guest/script and reports its status.
pub const INIT: &str = include_str!("guest/init.sh");
/// The functions for scripts.
pub const LIBRARY: &str = include_str!("guest/library.sh");
/// What differs from them in User-Mode Linux.
const UML_LIBRARY: &str = include_str!("guest/uml.sh");
/// The script around the user's one in the lab: filesystem, settings of the block layer, trace.
pub const LAB: &str = include_str!("guest/lab.sh");

/// The run's folder of the host that the guest sees.
pub const HOST_FOLDER: &str = "host";

/// What a guest in User-Mode Linux finds in /guest.
#[derive(Clone, Copy, Debug)]
pub struct GuestFiles<'a> {
    /// What its first process runs.
    pub script: &'a str,
    /// Environment variables of the script: names and values.
    pub environment: &'a [(String, String)],
    /// Further files: their names and content.
    pub texts: &'a [(&'a str, &'a str)],
    /// Programs, by name.
    pub programs: &'a [(&'a str, PathBuf)],
}

/// Lays out the folder of the host that the guest sees, in the run's folder, for a first boot.
///
/// Errors: the system's.
pub fn lay_out(folder: &Path, files: &GuestFiles) -> Result<(), LabError> {
    let host = folder.join(HOST_FOLDER);
    let guest = host.join("guest");
    for made in [&guest, &host.join("out")] {
        fs::create_dir_all(made).map_err(LabError::file(made))?;
    }
    let write = |path: PathBuf, text: &str| fs::write(&path, text).map_err(LabError::file(&path));
    write(host.join("output"), "")?;
    write(host.join("init"), INIT)?;
    write(guest.join("library.sh"), &(LIBRARY.to_owned() + UML_LIBRARY))?;
    write(guest.join("script"), files.script)?;
    for (name, text) in files.texts {
        write(guest.join(name), text)?;
    }
    for (name, program) in files.programs {
        fs::copy(program, guest.join(name)).map_err(LabError::file(program))?;
    }
    set_environment(folder, files.environment, 1)
}

/// Sets the script's variables, and `BOOT`: how often a machine has been started in this run.
///
/// Errors: the system's.
pub fn set_environment(folder: &Path, variables: &[(String, String)], boot: u32) -> Result<(), LabError> {
    let path = folder.join(HOST_FOLDER).join("guest/environment");
    let text = environment(variables) + &format!("export BOOT={boot}\n");
    fs::write(&path, text).map_err(LabError::file(&path))
}

/// The variables as a script that sets them.
pub fn environment(variables: &[(String, String)]) -> String {
    let quoted = |value: &str| value.replace('\'', r"'\''");
    variables.iter().map(|(name, value)| format!("export {name}='{}'\n", quoted(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        let variables = [("A".to_owned(), "it's $x".to_owned())];
        assert_eq!(environment(&variables), "export A='it'\\''s $x'\n");
    }
}
