internal import InletLinux
package import SystemPackage

/// Whether the kernel can tell us of writers in a root, in words for people.
package enum WriterCheck {
    /// `on`, or `off: why`. Leases need ownership of the file or CAP_LEASE, and a local file system.
    package static func describe(_ root: FilePath) -> String {
        if let kind = try? FileSystemKind.of(root), kind.isNetwork {
            return "off: \(kind.name) does not show writers on other machines; the settle time still counts, and "
                + "writers on this one are looked for in /proc"
        }
        // Root has it, but for containers that leave it out.
        if ProcessSetup.hasCapability(.lease) { return "on" }
        return "on for own files only: other owners' files need CAP_LEASE (the systemd unit grants it); "
            + "their writers are looked for in /proc, as far as it shows them"
    }
}
