//! The settings of a cluster's services. All their files are in its own directory, and hosts have addresses of their own network.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::shell::must_run;

/// Writes the files of settings, and makes the keys.
pub(super) fn write(directory: &Path, hosts: &[&str]) {
    let file = |name: &str, text: String| {
        fs::write(directory.join(name), text).expect("the directory is new and ours");
    };
    let addresses: String =
        hosts.iter().zip(1..).map(|(host, number)| format!("10.77.0.{number} {host}\n")).collect();
    file("hosts", format!("127.0.0.1 localhost\n{addresses}"));
    let at = directory.display();
    file("ssh_config", ssh_client(&at));
    file("sshd_config", ssh_server(&at));
    file("slurm.conf", slurm(&at, hosts));
    // There is no hierarchy of control groups in the cluster.
    file("cgroup.conf", "CgroupPlugin=cgroup/v1\n".to_owned());
    for name in ["host_key", "user_key"] {
        let mut generate = Command::new("ssh-keygen");
        generate.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(directory.join(name));
        must_run(&mut generate);
    }
    // The key only has to be the same everywhere: the cluster is reachable from itself alone.
    let key = directory.join("munge.key");
    fs::write(&key, [7; 64]).expect("the directory is new and ours");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("own file");
}

fn ssh_client(at: &dyn std::fmt::Display) -> String {
    format!(
        "Host *\n    IdentityFile {at}/user_key\n    StrictHostKeyChecking no\n    \
         UserKnownHostsFile /dev/null\n    LogLevel ERROR\n    ServerAliveInterval 10\n"
    )
}

fn ssh_server(at: &dyn std::fmt::Display) -> String {
    format!(
        "HostKey {at}/host_key\nAuthorizedKeysFile {at}/user_key.pub\nStrictModes no\nPermitRootLogin yes\n\
         PasswordAuthentication no\nUsePAM no\nUseDNS no\nPidFile none\nMaxStartups 500\nMaxSessions 500\n\
         LogLevel ERROR\n"
    )
}

fn slurm(at: &dyn std::fmt::Display, hosts: &[&str]) -> String {
    let (controller, nodes) = hosts.split_first().expect("a cluster has hosts");
    let nodes = nodes.join(",");
    format!(
        "ClusterName=fathom
SlurmctldHost={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PropagateResourceLimits=NONE
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
SlurmctldPidFile={at}/slurm/slurmctld.pid
SlurmdPidFile={at}/slurm/%n.pid
StateSaveLocation={at}/slurm/state
SlurmdSpoolDir={at}/slurm/%n.spool
TmpFS={at}/slurm/%n.tmp
SlurmctldLogFile={at}/slurm/slurmctld.log
SlurmdLogFile={at}/slurm/%n.log
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName={nodes} CPUs=256 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"
    )
}
