internal import InletCore
internal import Synchronization
internal import SystemPackage

/// The configuration that holds now. Whoever must not go on with an older one asks here each time.
final class LiveSettings: Sendable {
    private struct State {
        var settings: Settings
        var routes: RouteTable
        var former: [WatchSettings]
    }

    private let state: Mutex<State>
    /// The folders by which `send` finds a file's route, where those are not the watched ones.
    private let named: [WatchSettings]?

    /// - Parameter former: watched folders that left the configuration while files of theirs were under way.
    init(_ settings: Settings, sendRoots: [WatchSettings]? = nil, former: [WatchSettings] = []) {
        named = sendRoots
        state = Mutex(State(settings: settings, routes: RouteTable(settings.routes), former: former))
    }

    var settings: Settings { state.withLock(\.settings) }
    var routes: RouteTable { state.withLock(\.routes) }
    var watch: [WatchSettings] { state.withLock(\.settings.watch) }
    /// By which the place of a named file is found.
    var sendRoots: [WatchSettings] { named ?? watch }
    /// The watched folders, and behind them those that were.
    var knownRoots: [WatchSettings] { state.withLock { $0.settings.watch + $0.former } }

    func replace(_ settings: Settings, former: [WatchSettings]) {
        state.withLock { $0 = State(settings: settings, routes: RouteTable(settings.routes), former: former) }
    }
}
