import InletCore
import SystemPackage

/// Turns the checked values of a file into `Settings`, and checks rules across values: references between names,
/// patterns and templates, folders that would feed themselves. Each section of the configuration has its own file here.
struct SettingsReader {
    let root: YAMLNode
    var values: ValueReader
    let defaults: ConfigDefaults
    /// Every value that was read.
    private(set) var file = Section(ConfigKeys.all)
    /// The types of all readable destinations.
    private(set) var destinationTypes: [String: String] = [:]
    /// `limits.zone`.
    var zone: String?

    /// Collects all problems in `values.problems`; if there are any, do not use the settings.
    mutating func read() -> Settings {
        file = Section(.all, values.section(root, ConfigKeys.specs, label: ""))
        var settings = Settings(
            stateDirectory: file.stateDirectory ?? defaults.stateDirectory, workers: file.workers,
            shutdownGrace: file.shutdownTimeout)
        settings.log = log()
        settings.queueWarning = file.limits.queueWarning
        settings.destinations = destinations()
        settings.landlock = file.landlock
        settings.tlsKeyLog = file.tlsKeyLog
        settings.queueLimit = QueueLimit(files: file.limits.queueMaxFiles, bytes: file.limits.queueMaxBytes)
        settings.journalBackup = journalBackup()
        settings.historyAfter = historyAfter()
        destinationTypes = Dictionary(uniqueKeysWithValues: settings.destinations.map { ($0.name, $0.type) })
        checkStorages(settings.destinations)
        settings.bandwidth = bandwidth(settings.destinations)
        settings.proxy = proxies(settings.destinations)
        settings.watch = file.watch.map { watch($0) }
        settings.routes = routes()
        settings.undecidedNames = undecidedNames(settings)
        settings.notify = notifications(of: settings.routes)
        settings.ping = ping()
        settings.dashboard = dashboard()
        settings.fleet = fleet(settings.destinations)
        checkPlaces()
        checkFolders(settings)
        checkVolumes(settings)
        return settings
    }

    private mutating func log() -> LogSettings {
        let output = file.logOutput
        let isStream = LogSettings.streams.contains(output)
        if let size = file.logMaxSize, size < Self.smallestLog {
            report(file.position(\.logMaxSize), "'max_size' must be 64KiB or more, or off, so that a line fits")
        }
        return LogSettings(
            level: file.logLevel,
            output: isStream ? output : values.interpolation.resolve(output)?.string ?? output,
            format: file.logFormat, maxSize: file.logMaxSize, keep: file.logKeep)
    }

    private static let smallestLog: Int64 = 64 << 10

    private mutating func journalBackup() -> (every: Duration, keep: Int)? {
        guard let every = file.journalBackupEvery else { return nil }
        if every < .seconds(60) {
            report(
                file.position(\.journalBackupEvery), "'every' must be 1m or longer: a backup reads the whole journal")
        }
        return (every, file.journalBackupKeep)
    }

    private mutating func historyAfter() -> Duration? {
        if let after = file.journalHistoryAfter, after < .seconds(1) {
            report(file.position(\.journalHistoryAfter), "'after' must be 1s or longer")
        }
        return file.journalHistoryAfter
    }

    // MARK: - For all sections

    mutating func report(_ position: SourcePosition, _ message: String) { values.report(position, message) }

    /// The node that the value of `key` was read from; nil if the file has none.
    func node<Table, Value>(_ section: Section<Table>, _ key: KeyPath<Table, Key<Value>>) -> YAMLNode? {
        section.place(key).flatMap { values.nodes[$0] }
    }

    /// The texts under `key` with their nodes; a single value counts as a list of one.
    func texts<Table>(
        _ section: Section<Table>, _ key: KeyPath<Table, Key<[String]?>>
    ) -> [(text: String, node: YAMLNode)] {
        guard let texts = section[dynamicMember: key], let list = node(section, key) else { return [] }
        let nodes = if case .sequence(let items) = list.content { items } else { [list] }
        // An unreadable item has its own error and no text, so the remaining texts no longer match their nodes.
        return texts.count == nodes.count ? Array(zip(texts, nodes)) : []
    }

    /// The user's own names under `key`, each with its text.
    func entries<Table>(
        _ section: Section<Table>, _ key: KeyPath<Table, Key<[String: String]?>>
    ) -> [(entry: YAMLNode.Entry, text: String?)] {
        guard case .mapping(let entries)? = node(section, key)?.content else { return [] }
        let texts = section[dynamicMember: key] ?? [:]
        return entries.map { ($0, texts[$0.key]) }
    }

    /// Parses a pattern or template written at `node`, and reports an error at the exact character.
    mutating func parse<Result>(
        _ text: String, at node: YAMLNode, _ make: (String) throws(PatternError) -> Result
    ) -> Result? {
        do {
            return try make(text)
        } catch {
            if case .scalar(let written, _) = node.content, written == text {
                report(values.source.position(of: node, offset: error.offset), error.message)
            } else {
                // The parser's message could quote what was filled in.
                report(node.position, "with ${…} filled in, this value is not valid")
            }
            return nil
        }
    }

    /// The results of `make` for the texts under `key`.
    mutating func parsed<Table, Result>(
        _ section: Section<Table>, _ key: KeyPath<Table, Key<[String]?>>,
        _ make: (String) throws(PatternError) -> Result
    ) -> [Result] {
        texts(section, key).compactMap { parse($0.text, at: $0.node, make) }
    }

    func type(named name: String) -> DestinationType? { values.types.first { $0.name == name } }
}
