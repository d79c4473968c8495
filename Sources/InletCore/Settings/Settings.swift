package import SystemPackage

/// The configuration after reading: everything checked, every default filled in, patterns and templates parsed.
package struct Settings: Sendable {
    package var stateDirectory: FilePath
    /// Big transfers at once to each destination.
    package var workers: Int
    /// How long running parts may go on after SIGTERM.
    package var shutdownGrace: Duration
    package var landlock: LandlockRule = ConfigKeys.all.landlock.standard
    /// nil = keys of TLS connections are not logged.
    package var tlsKeyLog: FilePath?
    package var log = LogSettings()
    /// A warning is logged when more files wait than this.
    package var queueWarning = LimitKeys.all.queueWarning.standard
    /// How often the journal is backed up when it has changed, and how many backups are kept; nil = no automatic ones.
    package var journalBackup: (every: Duration, keep: Int)?
    /// How long after its end a file goes to the journal's compact history; nil = never.
    package var historyAfter: Duration? = ConfigKeys.all.journalHistoryAfter.standard
    package var queueLimit = QueueLimit()
    package var bandwidth = BandwidthLimits()
    /// nil = as the environment says.
    package var proxy: ProxySettings?
    package var destinations: [DestinationSettings] = []
    package var watch: [WatchSettings]
    package var routes: [Route]
    /// The configured notification receivers.
    package var notify: [NotifySettings] = []
    /// nil = no dead man's switch.
    package var ping: PingSettings?
    /// nil = no port is opened; the control socket exists regardless.
    package var dashboard: DashboardSettings?

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

/// `permissions:` — what is done about files that are not held as they should be: see `FileTrust` of InletConfig.
package enum PermissionRule: String, Sendable, CaseIterable {
    case warn
    /// They are not used.
    case strict
    case off
}

/// `landlock:` — whether the agent confines itself to what its configuration names (landlock(7)).
package enum LandlockRule: String, Sendable, CaseIterable {
    /// Where the kernel can, and nothing that it names could be lost by it.
    case auto
    /// It does not start otherwise.
    case required
    case off
}

/// `limits: queue_max_…` — beyond these no more is taken into the queue; files stay in their folders meanwhile.
package struct QueueLimit: Sendable, Equatable {
    /// Files that are pending; nil = any number.
    package var files: Int?
    /// Their sizes together; nil = any.
    package var bytes: Int64?

    package init(files: Int? = nil, bytes: Int64? = nil) {
        self.files = files
        self.bytes = bytes
    }

    package var isOff: Bool { files == nil && bytes == nil }

    /// Whether more fits beside what is pending. Into an empty queue everything does: a limit delays files, and keeps none out
    /// for good.
    package func takes(files more: Int, bytes size: Int64, besides pending: (files: Int, bytes: Int64)) -> Bool {
        if pending.files == 0 { return true }
        if let files, pending.files + more > files { return false }
        if let bytes, pending.bytes + size > bytes { return false }
        return true
    }

    /// Files of any size that fit beside what is pending, as far as can be told without their sizes; nil = any number.
    package func room(besides pending: (files: Int, bytes: Int64)) -> Int? {
        if isOff { return nil }
        if pending.files == 0 { return max(1, files ?? .max) }
        if let bytes, pending.bytes >= bytes { return 0 }
        return files.map { max(0, $0 - pending.files) }
    }
}

/// `log:` — what is written, where, and how.
package struct LogSettings: Sendable, Equatable {
    package enum Format: String, Sendable, CaseIterable {
        /// Sentences on a terminal, JSON anywhere else.
        case auto
        case json
        case text
    }
    /// The least first.
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
    /// The file is rotated to `PATH.1` before it exceeds so many bytes; nil = never.
    package var maxSize: Int64?
    /// How many rotated files are kept.
    package var keep: Int

    /// Outputs that are no files.
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

/// One entry of `destinations:`; the values are those of its type's key table.
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

/// A destination type as the reader knows it: its name, its keys (without `type` itself), and the fields of a route's `with:`
/// that it understands.
package struct DestinationType: Sendable {
    package var name: String
    package var summary: String
    package var keys: [KeySpec]
    package var fields: [FieldSpec]
    /// Whether a file's companions can be stored beside it. Where not, its metadata goes with it and other companions stay
    /// behind.
    package var takesSidecars: Bool
    /// Whether what is delivered there has a URL that others can be told: it can store files that are registered elsewhere.
    package var givesURLs: Bool
    /// The key that names the folder of this machine that files go to; nil for types that deliver elsewhere.
    package var folderKey: String?

    /// The key by which a type that only registers files names the destination that stores them.
    package static let storageKey = "storage"
    /// Whether it only registers files that another destination stores.
    package var namesStorage: Bool { keys.contains { $0.name == Self.storageKey } }

    package init(
        name: String, summary: String, keys: [KeySpec], fields: [FieldSpec] = [], takesSidecars: Bool = true,
        givesURLs: Bool = false, folderKey: String? = nil
    ) {
        self.name = name
        self.summary = summary
        self.keys = keys
        self.fields = fields
        self.takesSidecars = takesSidecars
        self.givesURLs = givesURLs
        self.folderKey = folderKey
    }
}

/// One field of `with:` that a destination type understands.
package struct FieldSpec: Sendable {
    package var name: String
    /// The template that stands for the field where a route gives none; nil where absence has its own meaning.
    package var defaultText: String?
    /// One sentence for the docs.
    package var summary: String
    /// The words that it can be, in any case; empty where any text will do. Templates are filled in before they are asked.
    package var choices: [String]

    package init(_ name: String, default: String? = nil, choices: [String] = [], _ summary: String) {
        self.name = name
        defaultText = `default`
        self.choices = choices
        self.summary = summary
    }

    /// `templates` with those of `specs` that are missing there: what is frozen at admission.
    package static func filled(_ templates: [String: KeyTemplate], _ specs: [FieldSpec]) -> [String: KeyTemplate] {
        var result = templates
        for spec in specs where result[spec.name] == nil {
            // Defaults are our own texts, which a test reads.
            result[spec.name] = spec.defaultText.flatMap { try? KeyTemplate($0) }
        }
        return result
    }
}
