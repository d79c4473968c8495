package import SystemPackage

/// The configuration as read: checked, with defaults filled in, and patterns and templates parsed.
package struct Settings: Sendable {
    package var stateDirectory: FilePath
    /// How many big files are sent to each destination at once.
    package var workers: Int
    /// How long transfers may take to finish after SIGTERM.
    package var shutdownGrace: Duration
    package var landlock: LandlockRule = ConfigKeys.all.landlock.standard
    /// nil for no log of TLS session keys.
    package var tlsKeyLog: FilePath?
    package var log = LogSettings()
    /// A warning is logged when more files than this are waiting.
    package var queueWarning = LimitKeys.all.queueWarning.standard
    /// How often to back up a changed journal, and how many backups to keep; nil for no automatic backups.
    package var journalBackup: (every: Duration, keep: Int)?
    /// How long after its end a file moves to the journal's compact history; nil for never.
    package var historyAfter: Duration? = ConfigKeys.all.journalHistoryAfter.standard
    package var queueLimit = QueueLimit()
    package var bandwidth = BandwidthLimits()
    /// nil to follow the environment.
    package var proxy: ProxySettings?
    package var destinations: [DestinationSettings] = []
    package var watch: [WatchSettings]
    package var routes: [Route]
    /// Destinations at which names stay because nothing says otherwise, sorted.
    package var undecidedNames: [String] = []
    /// The configured notification receivers.
    package var notify: [NotifySettings] = []
    /// nil for no dead man's switch.
    package var ping: PingSettings?
    /// nil opens no port; the control socket always exists.
    package var dashboard: DashboardSettings?
    /// nil for an agent alone: nothing of a fleet runs.
    package var fleet: FleetSettings?

    package init(
        stateDirectory: FilePath, workers: Int = ConfigKeys.all.workers.standard,
        shutdownGrace: Duration = ConfigKeys.all.shutdownTimeout.standard, watch: [WatchSettings] = [],
        routes: [Route] = []
    ) {
        self.stateDirectory = stateDirectory
        self.workers = workers
        self.shutdownGrace = shutdownGrace
        self.watch = watch
        self.routes = routes
    }
}

/// `permissions:` — what to do about files with unsafe permissions: see `FileTrust` of InletConfig.
package enum PermissionRule: String, Sendable, CaseIterable {
    case warn
    /// Does not use them.
    case strict
    case off
}

/// `landlock:` — whether the agent confines itself to the files of its configuration (landlock(7)).
package enum LandlockRule: String, Sendable, CaseIterable {
    /// If the kernel supports it, and confinement loses access to nothing that the configuration names.
    case auto
    /// The agent does not start without it.
    case required
    case off
}

/// `limits: queue_max_…` — limits of the queue; further files wait in their folders.
package struct QueueLimit: Sendable, Equatable {
    /// The most pending files; nil for no limit.
    package var files: Int?
    /// Their most bytes together; nil for no limit.
    package var bytes: Int64?

    package init(files: Int? = nil, bytes: Int64? = nil) {
        self.files = files
        self.bytes = bytes
    }

    /// Nothing is admitted but the files of open units.
    package static let closed = QueueLimit(files: 0)

    package var isOff: Bool { files == nil && bytes == nil }

    /// Whether more fits beside the pending files. An empty queue accepts everything, unless it is
    /// closed: a limit delays files, but never blocks one for good.
    package func takes(files more: Int, bytes size: Int64, besides pending: (files: Int, bytes: Int64)) -> Bool {
        if pending.files == 0 { return self != .closed }
        if let files, pending.files + more > files { return false }
        if let bytes, pending.bytes + size > bytes { return false }
        return true
    }

    /// How many files of any size fit beside the pending ones, as far as known without their sizes; nil for no limit.
    package func room(besides pending: (files: Int, bytes: Int64)) -> Int? {
        if isOff { return nil }
        if pending.files == 0 { return self == .closed ? 0 : max(1, files ?? .max) }
        if let bytes, pending.bytes >= bytes { return 0 }
        return files.map { max(0, $0 - pending.files) }
    }
}

/// `log:` — what to log, where, and in which format.
package struct LogSettings: Sendable, Equatable {
    package enum Format: String, Sendable, CaseIterable {
        /// Sentences on a terminal, JSON anywhere else.
        case auto
        case json
        case text
    }
    /// In ascending order.
    package enum Level: String, Sendable, CaseIterable, Comparable {
        case debug
        case info
        case warning
        case error

        private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

        package static func < (one: Level, other: Level) -> Bool { one.rank < other.rank }
    }

    package var level: Level
    /// `stderr`, `stdout`, `journald`, or a file's path.
    package var output: String
    package var format: Format
    /// Rotates the file to `PATH.1` before it exceeds this size in bytes; nil for never.
    package var maxSize: Int64?
    /// How many rotated files to keep.
    package var keep: Int

    /// Outputs other than files.
    package static let streams = ["stderr", "stdout", "journald"]

    package init(
        level: Level = ConfigKeys.all.logLevel.standard, output: String = ConfigKeys.all.logOutput.standard,
        format: Format = ConfigKeys.all.logFormat.standard, maxSize: Int64? = ConfigKeys.all.logMaxSize.standard,
        keep: Int = ConfigKeys.all.logKeep.standard
    ) {
        self.level = level
        self.output = output
        self.format = format
        self.maxSize = maxSize
        self.keep = keep
    }
}

/// An entry of `destinations:`; its values belong to its type's key table.
package struct DestinationSettings: Sendable, Equatable {
    package var name: String
    /// `r2`, `folder`…
    package var type: String
    package var values: ConfigSection

    package init(name: String, type: String, values: ConfigSection) {
        self.name = name
        self.type = type
        self.values = values
    }
}

/// A destination type for the reader: its name, its keys (without `type`), and the fields that it supports in a route's
/// `with:`.
package struct DestinationType: Sendable {
    package var name: String
    package var summary: String
    package var keys: [KeySpec]
    package var fields: [FieldSpec]
    /// Whether it can store companions beside a file. Otherwise metadata goes with the file, and other companions stay
    /// behind.
    package var takesSidecars: Bool
    /// Whether its files have a URL for others, so that it can store files that are registered elsewhere.
    package var givesURLs: Bool
    /// The key that names the local folder for the files; nil for types that deliver elsewhere.
    package var folderKey: String?

    /// The rule for file names in the keys of its destinations, unless the configuration has one.
    package var names: NameRule

    /// Of every type.
    package static let required = Key(
        "required", .boolean, default: false,
        "A card is not safe to remove without this destination, however many others have its files (copies).")

    /// Of every type. A route's comes first.
    package static let names = Key(
        "names", .choice(NameRule.self),
        "keep leaves the names of files and folders as they are, and encodes only what the destination cannot hold. "
            + "clean writes _ for white space and unusual characters. By default folder and s3 keep, and the others clean."
    )

    /// The key that names the storage of a type that only registers files.
    package static let storageKey = "storage"
    /// Whether it only registers files that another destination stores.
    package var namesStorage: Bool { keys.contains { $0.name == Self.storageKey } }

    package init(
        name: String, summary: String, keys: [KeySpec], fields: [FieldSpec] = [], takesSidecars: Bool = true,
        givesURLs: Bool = false, folderKey: String? = nil, names: NameRule = .clean
    ) {
        self.name = name
        self.summary = summary
        self.keys = keys + [Self.required.spec, Self.names.spec, Self.prefix.spec, Self.fleet.spec]
        self.fields = fields
        self.takesSidecars = takesSidecars
        self.givesURLs = givesURLs
        self.folderKey = folderKey
        self.names = names
    }

    /// The form of names in keys for a destination.
    ///
    /// - Parameter route: the rule of the route.
    package func nameForm(_ values: ConfigSection, route: NameRule? = nil) -> NameForm {
        switch route ?? Self.names.value(in: values) ?? names {
        case .clean: .clean
        case .keep: folderKey == nil ? .object : .folder
        }
    }
}

/// A field of `with:` that a destination type supports.
package struct FieldSpec: Sendable {
    package var name: String
    /// The default template; nil if a missing field has its own meaning.
    package var defaultText: String?
    /// One sentence for the documentation.
    package var summary: String
    /// The allowed words, in any case; empty for any text. Templates are rendered before the check.
    package var choices: [String]

    package init(_ name: String, default: String? = nil, choices: [String] = [], _ summary: String) {
        self.name = name
        defaultText = `default`
        self.choices = choices
        self.summary = summary
    }

    /// `templates` with defaults for the missing fields of `specs`: frozen at admission.
    package static func filled(_ templates: [String: KeyTemplate], _ specs: [FieldSpec]) -> [String: KeyTemplate] {
        var result = templates
        for spec in specs where result[spec.name] == nil {
            // Defaults are our own texts, which a test parses.
            result[spec.name] = spec.defaultText.flatMap { try? KeyTemplate($0) }
        }
        return result
    }
}
