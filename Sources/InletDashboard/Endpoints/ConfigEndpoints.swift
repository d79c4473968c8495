internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore

/// Changing the configuration: a form, a try, and the change itself.
extension Endpoints {
    static let configForm = TypedEndpoint.get(
        "config/form", "The folders, destinations and routes as the file has them, without secrets."
    ) { call throws -> ConfigFormReport in
        var report = ConfigFormReport(try await editor(call).form())
        if report.objection == nil, !call.principal.isFresh || call.principal.access < .full {
            let hasLogins = call.principal.login != .none
            report.objection = hasLogins ? tooOld.message : "there is no login here; add 'login: link' to dashboard"
            report.needs_login = hasLogins ? true : nil
        }
        return report
    }

    /// Of the keys of a form; equal for all agents of a version.
    static let configSchema = Endpoint(
        method: .get, path: Endpoint.base + "config/schema", summary: "The JSON schema of the configuration.",
        need: .read, answer: .object([], more: .anything), answerType: schemaType
    ) { call, _ in .text(try editor(call).schema, type: schemaType) }

    /// Of a JSON Schema document.
    private static let schemaType = "application/schema+json"

    /// Trying changes nothing. A login without the right to apply gets the lines only: checks of new values, and files in
    /// folders that they name, would tell more than it may know.
    static let tryConfig = TypedEndpoint.post(
        "config/try", "The effects of a change of the configuration; nothing is written.", ConfigOrder.self,
        need: .read,
        limit: Endpoint.largeBody
    ) { call, order throws -> ConfigTrialReport in
        let isFull = call.principal.access >= .full
        let trust: ConfigEditor.Trust = !isFull ? .reader : call.principal.isFresh ? .editor : .person
        let trial = try await guarded {
            try await editor(call).trial(of: order.wish(), since: order.hash, for: trust)
        }
        return ConfigTrialReport(trial)
    }

    static let applyConfig = TypedEndpoint.post(
        "config/apply", "Changes the configuration file, and reloads it. The login must be younger than ten minutes.",
        ConfigOrder.self, limit: Endpoint.largeBody, within: .seconds(120)
    ) { call, order throws -> ReloadReport in
        guard call.principal.isFresh else { throw tooOld }
        let applied = try await guarded {
            try await editor(call).apply(order.wish(), since: order.hash, by: call.principal.name)
        }
        var report = ReloadReport(applied.outcome)
        if let restart = applied.restart { report.message = "the file is changed; \(restart)" }
        return report
    }

    private static let tooOld = APIFault(
        403, "login_again", "log in again: only a login of the last ten minutes with full access may change the file")

    private static func editor(_ call: APICall) throws -> ConfigEditor {
        guard let editor = call.control.agent.live?.editor else {
            throw APIFault.notFound("this agent has no configuration file")
        }
        return editor
    }

    private static func guarded<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch ConfigEditor.Fault.changed(let lines) {
            var fault = APIFault(
                409, "changed", "the file was changed meanwhile; load it again, and repeat your change")
            fault.differences = lines.map { DiffLineReport($0) }
            throw fault
        } catch ConfigEditor.Fault.refused(let why) {
            throw APIFault(422, "refused", why)
        }
    }
}
