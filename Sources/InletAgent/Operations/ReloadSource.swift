package import InletConfig
package import InletCore
package import InletPipelines
package import SystemPackage

/// Where an agent's configuration comes from, for an agent that can take another one.
package struct ReloadSource: Sendable {
    /// The one that it was started with.
    package var config: LoadedConfig
    /// Those with which it is read.
    package var types: [DestinationType]
    /// Reads it as it is now, and tries all of it, with no effect on what runs. Blocks.
    package var read: @Sendable () throws(ConfigErrors) -> ReloadTrial

    /// Makes a destination anew with the secrets that stand behind the same text now; nil where the text is another, or cannot be
    /// read. Blocks.
    package var renew: @Sendable (_ name: String, _ held: LoadedConfig) -> Destination?

    package init(
        config: LoadedConfig, types: [DestinationType],
        renew: @escaping @Sendable (_ name: String, _ held: LoadedConfig) -> Destination? = { _, _ in nil },
        read: @escaping @Sendable () throws(ConfigErrors) -> ReloadTrial
    ) {
        self.config = config
        self.types = types
        self.renew = renew
        self.read = read
    }
}

/// A configuration that could be used, with what was made of it.
package struct ReloadTrial: Sendable {
    package var config: LoadedConfig
    package var destinations: [Destination]
    package var outlets: Outlets

    package init(config: LoadedConfig, destinations: [Destination], outlets: Outlets = Outlets()) {
        self.config = config
        self.destinations = destinations
        self.outlets = outlets
    }
}

/// What came of a reload.
package enum ReloadOutcome: Sendable, Equatable {
    /// The new configuration holds, but for what needs a restart.
    case done(changes: [ConfigChange], parked: Int, warnings: [ConfigFault] = [])
    /// The old one holds.
    case refused([ConfigFault])
    /// The old one holds, for a reason that is not in the file.
    case failed(String)
}

/// One thing wrong in a configuration file, or unwise, with its place; holds no secrets.
package struct ConfigFault: Sendable, Equatable {
    package var file: String
    /// Both count from 1.
    package var line: Int
    package var column: Int
    package var message: String
    /// The source line and a caret under the place; empty for an empty line.
    package var excerpt: String
    /// All of it, as `inlet check` prints it.
    package var text: String

    init(_ error: ConfigError) {
        file = error.file
        line = error.line
        column = error.column
        message = error.message
        excerpt = error.excerpt
        text = error.description
    }
}

/// The configuration of a running agent, as it may be shown.
package struct ShownConfig: Sendable, Equatable {
    package var file: FilePath
    /// As `inlet config show` prints it.
    package var text: String
    package var loadedAt: WallTime
}
