internal import Hummingbird
internal import InletAgent

extension ControlRoutes {
    func addReload(_ api: RouterGroup<ControlContext>) {
        api.post("reload") { _, _ in try await JSONAnswer(control.reload()) }
        api.get("config") { _, _ in
            guard let config = try await control.config() else { throw HTTPError(.notFound) }
            return JSONAnswer(config)
        }
    }
}
