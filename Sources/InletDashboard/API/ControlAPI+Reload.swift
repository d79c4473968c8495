internal import InletAgent

extension LocalControl {
    package func reload() async throws -> ReloadReport { ReloadReport(await commands.reload()) }

    package func config() async throws -> ConfigReport? { view.live?.config.map { ConfigReport($0) } }
}
