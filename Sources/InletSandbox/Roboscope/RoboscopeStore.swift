import InletCore

final class RoboscopeStore: Sendable {
    init(rules: RoboscopeRules, clock: @escaping @Sendable () -> WallTime) {}
    var rules: RoboscopeRules { get { .init() } set {} }
    func addSpace(key: String, name: String) -> RoboscopeSandbox.Space {
        .init(id: "", key: key, name: name, created: .now, updated: .now, changes: 0) }
    func lockElsewhere(_ session: String, for duration: Duration) {}
    func spaces() -> [RoboscopeSandbox.Space] { [] }
    func sessions() -> [RoboscopeSandbox.WorkSession] { [] }
    func markers() -> [RoboscopeSandbox.Marker] { [] }
    func events() -> [RoboscopeSandbox.Event] { [] }
    func present(in session: String) -> [String] { [] }
    func visitors(of session: String) -> [String] { [] }
    func isLocked(_ session: String) -> Bool { false }
}
