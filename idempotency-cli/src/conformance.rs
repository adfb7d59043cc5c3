//! `idempotency conformance`: grades a server.
//!
//! Ends with 0 when nothing failed and everything could be judged, with 1 when something did or could not, and with 2
//! when it was asked for what there is not.

mod options;
mod progress;

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use idempotency_conformance::{Report, Suite, grade};

use crate::conformance::{
    options::{Grading, Usage},
    progress::ProgressLine,
};
pub(crate) use options::{Arguments, Form};

const USAGE: u8 = 2;

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let ended = if arguments.is_list() { list(&arguments) } else { graded(arguments) };
    match ended {
        Ok(code) => code,
        Err(usage) => {
            let mut said = format!("idempotency conformance: {usage}");
            let mut source = std::error::Error::source(&usage);
            while let Some(error) = source {
                said.push_str(": ");
                said.push_str(&error.to_string());
                source = error.source();
            }
            eprintln!("{said}");
            ExitCode::from(USAGE)
        }
    }
}

fn list(arguments: &Arguments) -> Result<ExitCode, Usage> {
    let suite = arguments.suite()?;
    let mut out = io::stdout().lock();
    for vector in &suite.vectors {
        let needs: Vec<_> = vector.requires.iter().map(|needed| needed.as_str()).collect();
        let section = vector.section.as_deref().unwrap_or("-");
        let line =
            [vector.id.as_str(), vector.kind.as_str(), section, &needs.join(","), &vector.title].join("\t");
        match writeln!(out, "{line}") {
            // A reader that has seen enough is no failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => {
                eprintln!("idempotency conformance: the list could not be written: {error}");
                return Ok(ExitCode::FAILURE);
            }
            Ok(()) => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn graded(arguments: Arguments) -> Result<ExitCode, Usage> {
    let Grading { target, suite, options, form, out } = arguments.grading()?;
    // Before anything is sent: who cannot write the report need not wait for it. An earlier report stays until there is
    // another one.
    let open = |path: PathBuf| match OpenOptions::new().create(true).write(true).truncate(false).open(&path) {
        Ok(file) => Ok(file),
        Err(source) => Err(Usage::Out { path, source }),
    };
    let file = out.map(open).transpose()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Usage::Runtime)?;
    let mut line = ProgressLine::new();
    let report = runtime.block_on(grade(&target, &suite, &options, |progress| line.show(progress)));
    // A name that is still looked up does not hold up the end.
    runtime.shutdown_background();
    line.end(&report);
    if let Some(gone) = &report.gone {
        eprintln!("idempotency conformance: {gone}; it was not asked any more");
    }
    let text = form.of(&report);
    let written = match file {
        Some(file) => replace(file, text.as_bytes()),
        None => io::stdout().lock().write_all(text.as_bytes()),
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("idempotency conformance: the report could not be written: {error}");
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(code(&report)),
    }
}

/// Writes the report over what stood there, where that is a file.
fn replace(mut file: File, report: &[u8]) -> io::Result<()> {
    file.write_all(report)?;
    if file.metadata()?.is_file() {
        file.set_len(report.len() as u64)?;
    }
    Ok(())
}

fn code(report: &Report) -> ExitCode {
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Form {
    fn of(self, report: &Report) -> String {
        match self {
            Self::Json => report.json(),
            Self::Markdown => report.markdown(),
            Self::Junit => report.junit(),
        }
    }
}

impl Arguments {
    fn suite(&self) -> Result<Suite, Usage> {
        match self.vectors() {
            None => Ok(Suite::own()),
            Some(folder) => Ok(Suite::read(folder)?),
        }
    }
}
