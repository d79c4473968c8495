package import SystemPackage

/// `fleet:` — the PostgreSQL that several agents share, and how this one uses it.
package struct FleetSettings: Sendable, Equatable {
    /// Where an address of PostgreSQL comes from.
    package enum Source: Sendable, Equatable {
        case text(Secret)
        /// A file that holds only the address; it is read at each connection, so that it may change.
        case file(FilePath)
    }

    /// What to do with a file whose key is not granted in time.
    package enum WhenAway: String, Sendable, CaseIterable {
        /// Deliver it under a name that ends in the agent's tag, which belongs to this agent alone.
        case tag
        /// Hold it with the code `fleet_away`.
        case wait
    }

    package var url: Source
    /// nil: the host's name.
    package var name: String?
    /// A file with the secret to join with; needed once.
    package var joinFile: FilePath?
    /// How long a new file waits for its key before `whenAway` holds.
    package var patience: Duration
    package var whenAway: WhenAway
    /// Whether receipts go to the fleet, for its search.
    package var receipts: Bool
    /// The address of a role that may order other agents, for the commands of 'inlet fleet' and the page.
    package var adminURL: Source?
    /// Whether to connect to other machines without checking the server's certificate.
    package var allowsUnverified: Bool

    package static let standardPatience = Duration.seconds(60)
    /// The longest name of an agent, in characters.
    package static let longestName = 128

    package init(
        url: Source, name: String? = nil, joinFile: FilePath? = nil, patience: Duration = standardPatience,
        whenAway: WhenAway = .tag, receipts: Bool = true, adminURL: Source? = nil, allowsUnverified: Bool = false
    ) {
        self.url = url
        self.name = name
        self.joinFile = joinFile
        self.patience = patience
        self.whenAway = whenAway
        self.receipts = receipts
        self.adminURL = adminURL
        self.allowsUnverified = allowsUnverified
    }

    /// Why a text cannot be an agent's name; nil for one that can.
    package static func objection(toName name: String) -> String? {
        if name.isEmpty { return "is empty" }
        if name.unicodeScalars.count > longestName { return "is longer than \(longestName) characters" }
        let hasControls = name.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
        return hasControls ? "contains a control character, such as a line break" : nil
    }
}

/// `prefix:` and `fleet:` of a destination, whatever its type.
package struct FleetShareSettings: Sendable, Equatable {
    /// The folder that this agent has for itself: keys below it are never asked for. Ends in `/`.
    package var prefix: String?
    /// The most bytes per second of all agents together; nil for no limit of the fleet.
    package var bandwidth: Int64?
    /// The most big files at once of all agents together; nil for no limit.
    package var slots: Int?

    package init(prefix: String? = nil, bandwidth: Int64? = nil, slots: Int? = nil) {
        (self.prefix, self.bandwidth, self.slots) = (prefix, bandwidth, slots)
    }

    /// Why a text cannot be a prefix, with the correct form; nil for one that can.
    package static func objection(toPrefix prefix: String) -> String? {
        if prefix.hasPrefix("/") { return "must not begin with '/'; write for example station-3/" }
        guard prefix.hasSuffix("/") else {
            return "must end in '/', because it is a folder; write for example station-3/"
        }
        let folders = prefix.dropLast().split(separator: "/", omittingEmptySubsequences: false)
        if folders.contains(where: { ["", ".", ".."].contains($0) }) {
            return "must be a folder without empty parts, '.' and '..'; write for example station-3/"
        }
        if prefix.utf8.count > longestPrefix { return "is longer than \(longestPrefix) bytes" }
        let hasControls = prefix.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
        return hasControls ? "contains a control character, such as a line break" : nil
    }

    /// A key has at most 1,024 bytes, and its name needs room.
    private static let longestPrefix = 512
}

extension DestinationSettings {
    package var fleet: FleetShareSettings {
        let share = DestinationType.fleet.value(in: values)
        return FleetShareSettings(
            prefix: DestinationType.prefix.value(in: values), bandwidth: share.bandwidth ?? nil, slots: share.slots)
    }
}

// MARK: - Keys

/// `fleet:`. No key has a default here, so that a configuration without a fleet shows none.
package struct FleetKeys: KeyTable {
    static let key = Key(
        "fleet", FleetKeys(), untilRestart: { $0.fleet = $1.fleet },
        "Several agents share a PostgreSQL: keys, contents, limits, receipts and one view. Without it, none of that runs."
    )

    package let url = Key(
        "url", .secret,
        "The address of PostgreSQL, as in postgresql://station@db.lan/inlet?sslmode=verify-full. Give either this, or url_file."
    )
    package let urlFile = Key("url_file", .path, "A file that holds only the address; read at each connection.")
    package let name = Key(
        "name", .string, "The agent's name in the fleet, which no other agent has; the host's name by default.")
    package let joinFile = Key(
        "join_file", .path, "A file with the secret to join the fleet with. Needed once; delete it afterwards.")
    package let patience = Key(
        "patience", .duration,
        "How long PostgreSQL may grant no keys before when_away applies to new files, 1s to 24h; 1m by default.")
    package let whenAway = Key(
        "when_away", .choice(FleetSettings.WhenAway.self),
        "For a file whose key PostgreSQL does not grant in time: deliver it under a name with this agent's tag (tag, the default), or hold it (wait)."
    )
    package let receipts = Key(
        "receipts", .boolean,
        "Whether to publish receipts (names, keys and hashes) for the fleet's search; true by default.")
    package let adminURLFile = Key(
        "admin_url_file", .path,
        "A file with the address for a role of inlet_admin, for orders of 'inlet fleet' and of this agent's page."
    )
    package let allowUnverified = Key(
        "allow_unverified", .boolean,
        "Connect to another machine although sslmode is not verify-full; false by default. Others on the network can then read and change everything."
    )
}

/// `fleet:` of a destination.
package struct FleetShareKeys: KeyTable {
    package let bandwidth = Key(
        "bandwidth", .rate, "The highest sending rate of all agents together, as in 100MiB/s.")
    package let slots = Key(
        "slots", .integer(1...100_000), "The most big files that all agents together send at once.")
}

extension DestinationType {
    /// Of every type.
    package static let prefix = Key(
        "prefix", .string,
        "In a fleet: the folder that this agent has for itself, as in station-3/. Keys below it need no question to PostgreSQL."
    )

    /// Of every type.
    package static let fleet = Key(
        "fleet", FleetShareKeys(), "In a fleet: the limits of this destination for all agents together.")
}
