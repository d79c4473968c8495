package import InletCore
internal import InletLinux
package import SystemPackage

/// Whether others can have Inlet send what it may read and they may not, by a hard link in a watched folder.
package enum LinkCaution {
    /// What is to be said of a watched folder; nil where its rule, the kernel or its permissions see to it.
    ///
    /// - Parameters:
    ///   - isProtected: what `fs.protected_hardlinks` says; nil where that cannot be read, and is believed to be its usual value.
    ///   - folder: the folder's owner and permission bits.
    ///   - user: ours.
    package static func text(
        _ rule: SourceRule, isProtected: Bool?, folder: (owner: UInt32, mode: UInt32), user: UInt32
    ) -> String? {
        // Who owns the folder may give himself the right to write there.
        let isOthers = folder.mode & 0o022 != 0 || ![0, user].contains(folder.owner)
        guard rule.isOff, isProtected == false, isOthers else { return nil }
        return
            "fs.protected_hardlinks is 0, and others may write here: a hard link to a file that only Inlet may read would be "
            + "sent"
    }

    package static let remedy =
        "set the sysctl fs.protected_hardlinks to 1, or name the 'owners' of what is taken, or refuse 'hard_links'"

    /// The same of the folder at `path`, now. Blocks.
    package static func text(_ rule: SourceRule, at path: FilePath) -> String? {
        guard let folder = try? FileMode.ofFolder(path) else { return nil }
        return text(rule, isProtected: LinkProtection.isOn(), folder: folder, user: ProcessSetup.userID)
    }
}
