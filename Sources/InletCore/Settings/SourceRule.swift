/// Which regular files of a watched folder are taken, by what the files themselves say. Who may put names there may give one
/// to a file of somebody else: a hard link needs no right to read it where `fs.protected_hardlinks` is 0.
package struct SourceRule: Sendable, Equatable {
    package enum HardLinks: String, Sendable, CaseIterable {
        case allow, refuse
    }

    /// User IDs; nil = any.
    package var owners: Set<UInt32>?
    package var hardLinks: HardLinks

    package init(owners: Set<UInt32>? = nil, hardLinks: HardLinks = WatchKeys.all.hardLinks.standard) {
        self.owners = owners
        self.hardLinks = hardLinks
    }

    /// Why a file is not taken.
    package enum Refusal: Sendable, Hashable {
        case owner(UInt32)
        /// It has more than one name.
        case links
    }

    /// Whether it refuses anything at all.
    package var isOff: Bool { owners == nil && hardLinks == .allow }

    /// What the rule says of a file of `owner` with so many names; nil = it is taken.
    package func refusal(owner: UInt32, links: UInt64) -> Refusal? {
        if let owners, !owners.contains(owner) { return .owner(owner) }
        return hardLinks == .refuse && links > 1 ? .links : nil
    }
}

extension SourceRule.Refusal {
    /// What to do about it, for people.
    package func reason(files count: Int) -> String {
        let (files, have, their) = count == 1 ? ("1 file", "has", "its") : ("\(count) files", "have", "their")
        return switch self {
        case .owner(let user):
            "\(files) of user \(user) in this folder left alone: 'owners' does not name this user; give them to one of the "
                + "owners (chown), or add the user"
        case .links:
            "\(files) in this folder left alone: \(count == 1 ? "it" : "they") \(have) more than one name, and 'hard_links' is "
                + "refuse; remove \(their) other links, or put copies here"
        }
    }
}
