import ArgumentParser
import Foundation
import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

/// `--config FILE`, and where the configuration is looked for without it.
struct ConfigOption: ParsableArguments {
    @Option(
        name: [.short, .long],
        help: ArgumentHelp(
            "The configuration file.",
            discussion: """
                Without it: $INLET_CONFIG, then ~/.config/inlet/inlet.yaml, then /etc/inlet/inlet.yaml.
                """, valueName: "FILE"), completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    private static var environment: [String: String] { ProcessInfo.processInfo.environment }

    /// The configuration, complete and checked. Prints what is wrong and exits with 78 otherwise.
    ///
    /// - Parameter warns: whether what is right but unwise is printed; `check` lists it, others would say it at every call.
    func load(warns: Bool = false) throws -> LoadedConfig {
        guard let path = path() else {
            Console.printError(
                """
                inlet: no configuration found; name one with --config FILE, or put it in one of
                \(Self.places.map { "  \($0.display)" }.joined(separator: "\n"))
                'inlet demo' needs none.
                """)
            throw ExitStatus.configuration.code
        }
        do {
            let loaded = try Self.read(path)
            for warning in loaded.warnings where warns { Console.printError("warning: \(warning)") }
            return loaded
        } catch {
            Console.printErrors(error, in: path)
            throw ExitStatus.configuration.code
        }
    }

    /// The configuration as it is now, silently; throws when it cannot be used.
    func reload() throws(ConfigErrors) -> LoadedConfig {
        guard let path = path() else {
            throw ConfigErrors(list: [
                ConfigError(
                    file: config ?? "inlet.yaml", line: 1, column: 1, message: "there is no configuration any more",
                    excerpt: "")
            ])
        }
        return try Self.read(path)
    }

    static func read(_ path: FilePath) throws(ConfigErrors) -> LoadedConfig {
        try ConfigFile.load(
            path, types: DestinationKinds.types, environment: environment, defaults: defaults(environment))
    }

    /// Where a new one is written: the named file, or the first place in which it will be found; for root /etc/inlet.
    func newFile() -> FilePath {
        let named = config ?? Self.environment["INLET_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        let usual = ProcessSetup.userID == 0 ? nil : Self.places.first
        return FilePath.workingDirectory.pushing(named.map { FilePath($0) } ?? usual ?? "/etc/inlet/inlet.yaml")
            .lexicallyNormalized()
    }

    /// Whether `file` is what commands take that are given none.
    func isUsual(_ file: FilePath) -> Bool {
        if let named = Self.environment["INLET_CONFIG"], !named.isEmpty { return FilePath(named) == file }
        return Self.places.first(where: Self.isThere) == file
    }

    /// The socket of the agent of this configuration, which may be wrong or gone by now.
    func socket() -> FilePath {
        let defaults = Self.defaults(Self.environment)
        let state = path().map {
            ConfigFile.stateDirectory(
                of: $0, types: DestinationKinds.types, environment: Self.environment, defaults: defaults)
        }
        return StateDirectory.controlSocket(in: state ?? defaults.stateDirectory)
    }

    /// Whether there is a configuration where it is looked for.
    var isFound: Bool { path() != nil }

    private func path() -> FilePath? {
        if let config { return FilePath(config) }
        if let named = Self.environment["INLET_CONFIG"], !named.isEmpty { return FilePath(named) }
        return Self.places.first(where: Self.isThere)
    }

    /// A symlink may lead to one, as dotfiles and secret stores have it.
    private static func isThere(_ file: FilePath) -> Bool {
        // Of a folder that is closed to this user another place is the right one.
        switch FileLook.glance(at: file) {
        case .regular?, .symlink?: true
        default: false
        }
    }

    private static var places: [FilePath] {
        let home =
            Self.environment["XDG_CONFIG_HOME"].flatMap { $0.isEmpty ? nil : FilePath($0) }
            ?? ProcessSetup.homeDirectory?.appending(".config")
        return [home?.appending("inlet").appending("inlet.yaml"), "/etc/inlet/inlet.yaml"].compactMap(\.self)
    }

    static func defaults(_ environment: [String: String]) -> ConfigDefaults {
        var defaults = ConfigDefaults.standard(
            environment: environment, isRoot: ProcessSetup.userID == 0,
            workingDirectory: .workingDirectory)
        defaults.reader = FileTrust.Reader(user: ProcessSetup.userID, groups: ProcessSetup.groups)
        defaults.users = { FileOwner.user(named: $0) }
        return defaults
    }
}

// What shells offer where a name of the configuration is wanted: that of `--config` before it on the line, or the usual one.
extension CompletionKind {
    static let destinations = configured { $0.destinations.map(\.name) }
    static let routes = configured { $0.routes.map(\.name) }
    static let roots = configured { settings in settings.watch.filter { $0.pattern == nil }.map(\.path.string) }
    static let receivers = configured { $0.notify.map(\.name) }

    private static func configured(_ names: @escaping @Sendable (Settings) -> [String]) -> CompletionKind {
        .custom { words, _, _ in
            var options = ConfigOption()
            options.config = config(words)
            // While somebody types there is nobody to tell what is wrong with it.
            guard let loaded = try? options.reload() else { return [] }
            return names(loaded.settings).filter(isPlain)
        }
    }

    /// Whether a shell takes the name as it is: bash's script expands what it is offered, and a configuration may come from
    /// anybody.
    private static func isPlain(_ name: String) -> Bool {
        name.unicodeScalars.allSatisfy { scalar in
            !scalar.properties.isWhitespace && scalar.properties.generalCategory != .control
                && !"$`\\\"'".unicodeScalars.contains(scalar)
        }
    }

    /// The value of `--config` among the words of a command line.
    private static func config(_ words: [String]) -> String? {
        for (index, word) in words.enumerated() {
            for name in ["--config", "-c"] {
                if word == name, index + 1 < words.count { return words[index + 1] }
                if word.hasPrefix(name + "=") { return String(word.dropFirst(name.count + 1)) }
            }
        }
        return nil
    }
}

extension FilePath {
    /// Where the command was called.
    static var workingDirectory: FilePath { FilePath(FileManager.default.currentDirectoryPath) }

    /// A path of the command line; a relative one begins in the working directory.
    static func absolute(_ path: String) -> FilePath {
        workingDirectory.pushing(FilePath(path)).lexicallyNormalized()
    }

    /// What commands keep for this user, below `XDG_STATE_HOME`.
    static var userState: FilePath {
        let base =
            ProcessSetup.environment("XDG_STATE_HOME").flatMap { $0.isEmpty ? nil : FilePath($0) }
            ?? ProcessSetup.homeDirectory?.appending(".local").appending("state") ?? "/var/tmp"
        return base.appending("inlet")
    }
}
