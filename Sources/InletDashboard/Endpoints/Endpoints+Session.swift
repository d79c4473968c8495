internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore

/// Who somebody is, and whether the agent is well.
extension Endpoints {
    static let session: [Endpoint] = [
        .get("session", "What you may do, and what is asked of those who want in.", need: .nothing) { call, context in
            report(call.visitor.access, call, context)
        },
        login, logout,
    ]

    static let health: [Endpoint] = [
        Endpoint(
            method: .get, path: "/healthz", summary: "Answers while the process does.", need: .nothing,
            answer: .text("text/plain")
        ) { _, _ in .text("ok\n") },
        Endpoint(
            method: .get, path: "/readyz", summary: "Whether the agent does what it is there for, and if not, why.",
            need: .nothing, answer: .json(.named(ReadyReport.self)), others: [503]
        ) { call, context in
            let reasons = ReadyReport.reasons(context.control.agent.live)
            let mayKnow = call.visitor.access >= .read
            let report = ReadyReport(
                ready: reasons.isEmpty, reasons: reasons.isEmpty || !mayKnow ? nil : reasons)
            return try .json(report, status: reasons.isEmpty ? 200 : 503)
        },
    ]

    static let document = Endpoint(
        method: .get, path: Endpoint.base + "openapi.json", summary: "This document.", need: .read,
        answer: .json(.object([], more: .anything))
    ) { _, context in try .json(OpenAPI.document(all, version: context.version)) }

    private static let login: Endpoint = {
        var endpoint = Endpoint.post(
            "login", "Opens a session, and sets its cookie.", LoginOrder.self, need: .nothing
        ) { call, context, _ in report(call.visitor.access, call, context) }
        endpoint.handle = { call, context in
            guard let logIn = call.visitor.logIn else {
                return try .json(report(call.visitor.access, call, context))
            }
            let (access, cookie) = try logIn(Secret(call.decoded(LoginOrder.self).secret))
            var response = try Response.json(report(access, call, context))
            response.headers[.setCookie] = cookie
            return response
        }
        return endpoint
    }()

    private static let logout: Endpoint = {
        var endpoint = Endpoint.post("logout", "Ends your session.", need: .nothing) { call, context in
            report(call.visitor.access, call, context)
        }
        endpoint.handle = { call, context in
            let cookie = call.visitor.logOut?()
            let access = call.visitor.login == .none ? call.visitor.access : .none
            var response = try Response.json(report(access, call, context))
            if let cookie { response.headers[.setCookie] = cookie }
            return response
        }
        return endpoint
    }()

    private static func report(_ access: Access, _ call: APICall, _ context: APIContext) -> SessionReport {
        SessionReport(access: access, login: call.visitor.login, version: context.version)
    }
}
