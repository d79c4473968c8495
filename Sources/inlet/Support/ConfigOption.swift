import ArgumentParser
import Foundation
import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

/// `--config FILE`, and the places where the configuration is searched without it.
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

    /// The configuration, complete and checked. Prints errors and exits with 78 otherwise.
    ///
    /// - Parameter warns: whether warnings are printed; `check` lists them, and other commands would repeat them at
    ///   every call.
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

    /// The present configuration, silently; throws when it cannot be used.
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

    /// A text that is to become the file at `path`.
    static func parse(_ text: [UInt8], as path: FilePath) throws(ConfigErrors) -> LoadedConfig {
        try ConfigFile.parse(
            text: text, file: path, types: DestinationKinds.types, environment: environment,
            defaults: defaults(environment))
    }

    /// The path for a new configuration: the named file, or the first place of the search; for root /etc/inlet.
    func newFile() -> FilePath {
        let named = config ?? Self.environment["INLET_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        let usual = ProcessSetup.userID == 0 ? nil : Self.places.first
        return FilePath.workingDirectory.pushing(named.map { FilePath($0) } ?? usual ?? Self.ofService)
            .lexicallyNormalized()
    }

    /// Whether commands without `--config` use `file`.
    func isUsual(_ file: FilePath) -> Bool {
        if let named = Self.environment["INLET_CONFIG"], !named.isEmpty { return FilePath(named) == file }
        return Self.places.first(where: Self.isThere) == file
    }

    /// The socket of this configuration's agent, even if the file is invalid or gone by now.
    func socket() -> FilePath {
        let defaults = Self.defaults(Self.environment)
        let state = path().map {
            ConfigFile.stateDirectory(
                of: $0, types: DestinationKinds.types, environment: Self.environment, defaults: defaults)
        }
        return StateDirectory.controlSocket(in: state ?? defaults.stateDirectory)
    }

    /// Whether the search finds a configuration.
    var isFound: Bool { path() != nil }

    /// Whether it is the one that the package's service reads.
    var isOfService: Bool { path() == Self.ofService }

    private func path() -> FilePath? {
        if let config { return FilePath(config) }
        if let named = Self.environment["INLET_CONFIG"], !named.isEmpty { return FilePath(named) }
        return Self.places.first(where: Self.isThere)
    }

    /// Dotfiles and secret stores use symlinks.
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
        return [home?.appending("inlet").appending("inlet.yaml"), ofService].compactMap(\.self)
    }

    /// The file that the package's service reads.
    static let ofService: FilePath = "/etc/inlet/inlet.yaml"

    static func defaults(_ environment: [String: String]) -> ConfigDefaults {
        var defaults = ConfigDefaults.standard(
            environment: environment, isRoot: ProcessSetup.userID == 0,
            workingDirectory: .workingDirectory)
        defaults.reader = FileTrust.Reader(user: ProcessSetup.userID, groups: ProcessSetup.groups)
        defaults.users = { FileOwner.user(named: $0) }
        return defaults
    }
}

// Shell completion for names of the configuration: that of an earlier `--config` on the line, or the usual one.
extension CompletionKind {
    static let destinations = configured { $0.destinations.map(\.name) }
    static let routes = configured { $0.routes.map(\.name) }
    static let roots = configured { settings in settings.watch.filter { $0.pattern == nil }.map(\.path.string) }
    static let receivers = configured { $0.notify.map(\.name) }

    private static func configured(_ names: @escaping @Sendable (Settings) -> [String]) -> CompletionKind {
        .custom { words, _, _ in
            var options = ConfigOption()
            options.config = config(words)
            // Completion ignores errors: the line is still being typed.
            guard let loaded = try? options.reload() else { return [] }
            return names(loaded.settings).filter(isPlain)
        }
    }

    /// Whether a shell takes the name literally: bash's script expands completions, and a configuration may come from
    /// anybody.
    private static func isPlain(_ name: String) -> Bool {
        name.unicodeScalars.allSatisfy { scalar in
            !scalar.properties.isWhitespace && scalar.properties.generalCategory != .control
                && !"$`\\\"'".unicodeScalars.contains(scalar)
        }
    }

    /// The value of `--config` on a command line.
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
    /// The command's working directory.
    static var workingDirectory: FilePath { FilePath(FileManager.default.currentDirectoryPath) }

    /// A path of the command line; a relative one begins in the working directory.
    static func absolute(_ path: String) -> FilePath {
        workingDirectory.pushing(FilePath(path)).lexicallyNormalized()
    }

    /// The folder for commands' own state of this user, below `XDG_STATE_HOME`.
    static var userState: FilePath {
        let base =
            ProcessSetup.environment("XDG_STATE_HOME").flatMap { $0.isEmpty ? nil : FilePath($0) }
            ?? ProcessSetup.homeDirectory?.appending(".local").appending("state") ?? "/var/tmp"
        return base.appending("inlet")
    }
}
