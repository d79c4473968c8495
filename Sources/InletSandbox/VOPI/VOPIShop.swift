import InletCore
import SystemPackage

final class VOPIShop: Sendable {
    init(directory: FilePath, credits: Int, rules: VOPIRules, clock: @escaping @Sendable () -> WallTime) throws {}
    var rules: VOPIRules { get { VOPIRules() } set {} }
    func signIn() -> VOPISandbox.Session { .init(accessToken: Secret(""), refreshToken: Secret("")) }
    func expireAccessTokens() {}
    func revokeRefreshTokens() {}
    var credits: Int { get { 0 } set {} }
    func advance(steps: Int) {}
    func jobs() -> [VOPISandbox.Job] { [] }
    func videos() -> [VOPISandbox.Video] { [] }
    func pictures(of job: String) -> [VOPISandbox.Picture] { [] }
    var tally: VOPISandbox.Tally { .init() }
}
