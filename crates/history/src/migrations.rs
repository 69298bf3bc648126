//! The formats of a history, and the steps from each to the next.
//!
//! `migrations/` has one SQL file per step and kind of database, after which code may fill columns from the stored records. A
//! released step is never edited: changes get the next number. Servers begin with format 4.

use crate::database::{APPLICATION_ID, Database, Mode, Transaction};
use crate::error::{ANOTHER, ErrorKind, Failure};
use crate::{Error, Location, columns};

/// One step from a format to the next.
#[derive(Clone, Copy)]
pub(crate) struct Migration {
    /// In a file.
    pub(crate) sqlite: &'static str,
    /// On a server.
    pub(crate) postgres: &'static str,
    /// What SQL cannot derive from the stored records.
    pub(crate) fill: Option<Fill>,
}

/// Fills columns from the stored records.
type Fill = fn(&Transaction<'_>) -> Result<(), Failure>;

/// The steps from an empty database to the current format; the format's number is the number of steps.
pub(crate) const STEPS: &[Migration] = &[
    Migration { sqlite: include_str!("../migrations/sqlite/0001.sql"), postgres: "", fill: None },
    Migration { sqlite: include_str!("../migrations/sqlite/0002.sql"), postgres: "", fill: None },
    Migration { sqlite: include_str!("../migrations/sqlite/0003.sql"), postgres: "", fill: None },
    Migration {
        sqlite: include_str!("../migrations/sqlite/0004.sql"),
        postgres: include_str!("../migrations/postgres/0004.sql"),
        fill: Some(columns::fill),
    },
];

/// The newest format this crate knows.
pub(crate) const FORMAT: i32 = STEPS.len() as i32;

/// The owner of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseOwner {
    /// None: no table, no id.
    Empty,
    /// fathom, in this format.
    Ours(i32),
    /// Another program.
    Foreign {
        /// Its id; 0 without one.
        application_id: i32,
    },
}

/// Whose the database is. Must run in a transaction, because it reads several values.
pub(crate) fn identify(transaction: &Transaction<'_>) -> Result<DatabaseOwner, Failure> {
    Ok(match transaction.format()? {
        None => DatabaseOwner::Empty,
        Some((id, format)) if id == i64::from(APPLICATION_ID) && format > 0 => {
            DatabaseOwner::Ours(i32::try_from(format).unwrap_or(i32::MAX))
        }
        Some((id, _)) => DatabaseOwner::Foreign { application_id: i32::try_from(id).unwrap_or(0) },
    })
}

/// `found`, where this version can use it.
pub(crate) fn permitted(found: DatabaseOwner, at: &Location) -> Result<DatabaseOwner, Error> {
    permitted_up_to(found, at, FORMAT)
}

fn permitted_up_to(found: DatabaseOwner, at: &Location, known: i32) -> Result<DatabaseOwner, Error> {
    let (what, remedy) = match found {
        DatabaseOwner::Ours(found) if found > known => (
            format!("has format {found}; this version of fathom supports formats up to {known}"),
            "use the version of fathom that wrote it or a newer one; or ",
        ),
        DatabaseOwner::Foreign { application_id } => (
            format!("is the database of another program (application id {application_id:#x})"),
            match at {
                Location::Server(_) => {
                    "give fathom a database of its own, without another schema named fathom; or "
                }
                Location::File(_) => "",
            },
        ),
        DatabaseOwner::Empty | DatabaseOwner::Ours(_) => return Ok(found),
    };
    Err(Error::at(at, ErrorKind::Unusable, what, format!("{remedy}{ANOTHER}")))
}

/// Runs the missing steps in one transaction: a killed process leaves the old format or the new one.
pub(crate) fn migrate(
    database: &Database,
    at: &Location,
    steps: &[Migration],
) -> Result<DatabaseOwner, Error> {
    let known = steps.len() as i32;
    let migrated = database.transaction(Mode::Long, |transaction| {
        transaction.exclude_others()?;
        // Another process may have migrated it while this one waited for the lock.
        let from = match permitted_up_to(identify(transaction)?, at, known) {
            Ok(DatabaseOwner::Ours(format)) => format as usize,
            Ok(_) => 0,
            Err(error) => return Ok(Err(error)),
        };
        for step in steps.iter().skip(from) {
            transaction.batch(match database {
                Database::Sqlite(_) => step.sqlite,
                Database::Server(_) => step.postgres,
            })?;
            step.fill.map_or(Ok(()), |fill| fill(transaction))?;
        }
        transaction.set_format(known)?;
        Ok(Ok(DatabaseOwner::Ours(known)))
    });
    migrated.map_err(|failure| Error::from_failure(at, "migrate it to the current format", failure))?
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fathom_tests::PostgresServer;

    use super::*;
    use crate::database::Access;

    const PATIENCE: Duration = Duration::from_secs(5);

    /// Runs `check` on a new history in a file and on a server.
    fn on_both(check: impl Fn(&Location)) {
        let directory = tempfile::tempdir().unwrap();
        check(&Location::File(directory.path().join("h.db")));
        if let Some(server) = PostgresServer::shared() {
            check(&Location::new(server.uri(&server.create_database())));
        }
    }

    fn open(location: &Location) -> Result<Database, Error> {
        Database::open(location, Access::Create, PATIENCE)
    }

    fn step(sql: &'static str) -> Migration {
        Migration { sqlite: sql, postgres: sql, fill: None }
    }

    fn number(database: &Database, sql: &str) -> Result<i64, Failure> {
        database.transaction(Mode::Read, |transaction| transaction.number(sql))
    }

    #[test]
    fn migrations_run_once_and_in_order() {
        on_both(|location| {
            let database = open(location).unwrap();
            let later = ["CREATE TABLE later (x BIGINT)", "INSERT INTO later VALUES (7)"].map(step);
            let longer = [STEPS, &later].concat();
            for _ in 0..2 {
                let migrated = migrate(&database, location, &longer).unwrap();
                assert_eq!(migrated, DatabaseOwner::Ours(FORMAT + 2));
            }
            assert_eq!(number(&database, "SELECT count(*) FROM later").unwrap(), 1);
            drop(database);
            let newer = open(location).unwrap_err();
            let expected =
                format!("has format {}; this version of fathom supports formats up to {FORMAT}", FORMAT + 2);
            assert!(newer.to_string().ends_with(&expected), "{newer}");
        });
    }

    #[test]
    fn a_failing_migration_changes_nothing() {
        on_both(|location| {
            let database = open(location).unwrap();
            let broken = [STEPS, &["CREATE TABLE later (x BIGINT)", "no SQL"].map(step)].concat();
            assert!(migrate(&database, location, &broken).is_err());
            let owner = database.transaction(Mode::Read, identify).unwrap();
            assert_eq!(owner, DatabaseOwner::Ours(FORMAT));
            assert!(number(&database, "SELECT count(*) FROM later").is_err());
        });
    }
}
