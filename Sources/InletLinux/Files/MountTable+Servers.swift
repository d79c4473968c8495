package import SystemPackage

extension MountTable {
    /// Where another machine's folders are mounted strictly below `folder`: while that machine does not answer, neither does a call
    /// that so much as looks at one. Blocks on `folder` alone.
    ///
    /// - Returns: their paths below `folder` as it is named here, which may lead through symlinks.
    package func servers(below folder: FilePath) -> Set<FilePath> {
        let real = folder.resolved
        let points = below(real).filter { Self.servers.contains($0.type) }.compactMap { mount -> FilePath? in
            var rest = mount.point
            guard rest.removePrefix(real) else { return nil }
            return folder.pushing(rest)
        }
        return Set(points)
    }

    /// Not those that the host of a virtual machine lends: it shares its disks' fate.
    private static let servers: Set<String> = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "coda", "lustre", "gpfs", "beegfs", "fhgfs", "glusterfs",
        "orangefs", "pvfs2", "davfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.ceph", "fuse.glusterfs",
        "fuse.smbnetfs", "fuse.curlftpfs", "fuse.davfs2", "fuse.gvfsd-fuse",
    ]
}
