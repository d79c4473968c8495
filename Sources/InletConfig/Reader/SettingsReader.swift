import InletCore
import SystemPackage

/// Turns the checked values of a file into `Settings`, and checks what concerns more than one value: names that refer
/// to each other, patterns and templates, folders that would feed themselves.
struct SettingsReader {
    let root: YAMLNode
    var values: ValueReader
    let defaults: ConfigDefaults
    /// The type of each destination that could be read.
    private(set) var destinationTypes: [String: String] = [:]
    /// `limits.zone`.
    var zone: String?
    /// Every value that was read.
    private(set) var filled: ConfigSection

    init(root: YAMLNode, values: ValueReader, defaults: ConfigDefaults) {
        self.root = root
        self.values = values
        self.defaults = defaults
        filled = ConfigSection(values: [:], positions: [:], position: root.position)
    }

    /// All problems are in `values.problems` afterwards; with any, the settings are not to be used.
    mutating func read() -> Settings {
        let section = values.section(root, KeyTables.top(types: values.types), label: "")
        filled = section
        var settings = Settings(stateDirectory: defaults.stateDirectory)
        if let path = section.string("state_dir") { settings.stateDirectory = FilePath(path) }
        if let workers = section.integer("workers") { settings.workers = workers }
        if let grace = section.duration("shutdown_timeout") { settings.shutdownGrace = grace }
        if let rule = section.string("landlock").flatMap(LandlockRule.init) { settings.landlock = rule }
        settings.tlsKeyLog = section.string("tls_key_log").map { FilePath($0) }
        settings.log = log(section.section("log"))
        if let limits = section.section("limits") {
            if let count = limits.integer("queue_warning") { settings.queueWarning = count }
            settings.queueLimit = QueueLimit(
                files: limits.integer("queue_max_files"), bytes: limits.bytes("queue_max_bytes"))
        }
        settings.journalBackup = journalBackup(section.section("journal_backup"))
        settings.historyAfter = historyAfter(section.section("journal_history"))
        settings.destinations = destinations(section.section("destinations"))
        destinationTypes = Dictionary(uniqueKeysWithValues: settings.destinations.map { ($0.name, $0.type) })
        checkStorages(settings.destinations, section)
        settings.bandwidth = bandwidth(section)
        settings.proxy = proxies(section, settings.destinations)
        settings.watch = sections("watch", of: section, root).map { watch($0.section, $0.node) }
        settings.routes = routes(section)
        readNotifications(section, into: &settings)
        settings.dashboard = dashboard(section)
        checkFolders(settings, section)
        checkVolumes(settings, section)
        return settings
    }

    private mutating func journalBackup(_ section: ConfigSection?) -> BackupRule? {
        guard let section, let every = section.duration("every") else { return nil }
        if every < .seconds(60) {
            report(position("every", section), "a backup reads the whole journal: every minute (1m) at most")
        }
        return BackupRule(every: every, keep: section.integer("keep") ?? 7)
    }

    private mutating func historyAfter(_ section: ConfigSection?) -> Duration? {
        guard let section, let after = section.duration("after") else { return nil }
        if after < .seconds(1) { report(position("after", section), "a file is there for a second (1s) at least") }
        return after
    }

    private func destinations(_ section: ConfigSection?) -> [DestinationSettings] {
        guard let section else { return [] }
        return section.positions.sorted { $0.value < $1.value }.compactMap { name, _ in
            guard let values = section.section(name), let type = values.string("type") else { return nil }
            return DestinationSettings(name: name, type: type, values: values)
        }
    }

    /// The entries of the list of sections under `key`, each with its node.
    func sections(
        _ key: String, of section: ConfigSection, _ node: YAMLNode
    ) -> [(section: ConfigSection, node: YAMLNode)] {
        guard case .list(let items)? = section.values[key], let nodes = node[key]?.items else { return [] }
        return zip(items, nodes).compactMap { item, node in
            if case .section(let section) = item { (section, node) } else { nil }
        }
    }

    /// The texts under `key` with the nodes they were read from; a single value counts as a list of one.
    func texts(_ key: String, _ section: ConfigSection, _ node: YAMLNode) -> [(text: String, node: YAMLNode)] {
        guard let texts = section.strings(key), let list = node[key] else { return [] }
        let nodes = if case .sequence(let items) = list.content { items } else { [list] }
        // An item that could not be read has its own error and no text; the others cannot be told apart then.
        return texts.count == nodes.count ? Array(zip(texts, nodes)) : []
    }

    mutating func report(_ position: SourcePosition, _ message: String) { values.report(position, message) }

    /// Parses a pattern or template written at `node`, and reports its error at the exact character.
    mutating func parse<Result>(
        _ text: String, at node: YAMLNode, _ make: (String) throws(PatternError) -> Result
    ) -> Result? {
        do {
            return try make(text)
        } catch {
            if case .scalar(let written, _) = node.content, written == text {
                report(values.place.position(of: node, offset: error.offset), error.message)
            } else {
                // The parser's words could quote what was filled in.
                report(node.position, "with ${…} filled in, this cannot be understood")
            }
            return nil
        }
    }

    /// Patterns under `key`.
    mutating func patterns(_ key: String, _ section: ConfigSection, _ node: YAMLNode) -> [GlobPattern] {
        texts(key, section, node).compactMap { text, node in
            parse(text, at: node) { text throws(PatternError) in try GlobPattern(text) }
        }
    }
}

extension SourcePosition {
    static func < (left: SourcePosition, right: SourcePosition) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}
