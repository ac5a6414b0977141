//! A writer with identifiable writes: before and after each write it prints a record to standard output, which the host
//! saves; after a power cut the host compares the medium with these records.
//!
//! Absent on purpose: any verdict, and any library: it is linked statically and runs in a guest that has nothing else.

mod files;
mod pattern;
mod sectors;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::sectors::{Part, Records};

const USAGE: &str = "usage: disk-writer write-sectors DEVICE FIRST SECTORS SEED NUMBER THREADS
       disk-writer read-sectors DEVICE FIRST SECTORS
       disk-writer write-files FOLDER SEED NUMBER
       disk-writer read-files FOLDER";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("disk-writer: {error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command; nothing if it is not understood.
fn run(args: &[&str]) -> Option<io::Result<()>> {
    let records = Records::new(io::stdout());
    let (command, rest) = args.split_first()?;
    let (place, numbers) = rest.split_first()?;
    let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().ok()).collect::<Option<_>>()?;
    match (*command, numbers.as_slice()) {
        ("write-sectors", &[first, sectors, seed, number, threads]) if threads > 0 && sectors / threads >= 128 => {
            Some(sectors::write(Part { device: place, first, sectors }, seed, number, threads, &records))
        }
        ("read-sectors", &[first, sectors]) => Some(sectors::read(Part { device: place, first, sectors }, &records)),
        ("write-files", &[seed, number]) => Some(files::write(Path::new(place), seed, number, &records)),
        ("read-files", &[]) => Some(files::read(Path::new(place), &records)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_commands_are_not_run() {
        for bad in [&[][..], &["write-sectors"], &["read-sectors", "/dev/null", "x", "1"], &["write-files", "a", "1"]] {
            assert!(run(bad).is_none(), "{bad:?}");
        }
        assert!(run(&["write-sectors", "/dev/null", "0", "100", "1", "1", "1"]).is_none(), "too few sectors");
    }
}
