import InletCore
import InletLinux
import InletTestSupport
import Testing

@testable import InletPipelines

/// Which way destinations and notices go, as the factory makes them.
@Suite struct ProxyUseTests {
    private func section(_ values: [String: ConfigValue]) -> ConfigSection {
        ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
    }

    private func proxy(_ address: String, noProxy: [String] = []) -> ConfigSection {
        section(["url": .secret(Secret(address)), "no_proxy": .list(noProxy.map { .string($0) })])
    }

    private func store(_ api: String, proxy: ConfigSection? = nil) -> DestinationSettings {
        var values = section([
            "api": .string(api), "api_key": .secret(Secret("canary")), "allow_http": .boolean(true),
        ])
        if let proxy { values.values["proxy"] = .section(proxy) }
        return DestinationSettings(name: "store", type: "r2", values: values)
    }

    private func withFactory(
        _ proxy: ConfigSection, _ body: (PipelineFactory) async throws -> Void
    ) async throws {
        let factory = PipelineFactory(
            pool: BlockingPool(name: "proxy", threads: 1), userAgent: "inlet-tests/1",
            proxy: try ProxySettings(Section(ProxyKeys(), proxy)))
        defer { factory.shutdown() }
        try await body(factory)
    }

    @Test func `a destination goes through its own proxy, or else through that of all`() async throws {
        let all = try ForwardProxy(to: 1)
        let own = try ForwardProxy(to: 1)
        try await withFactory(proxy(all.address, noProxy: ["near.test"])) { factory in
            let usual = try #require(try factory.proxyUse(store("http://store.test")))
            #expect(usual.proxy == all.address)
            try await usual.connect()
            #expect(try factory.proxyUse(store("http://store.test", proxy: proxy(own.address)))?.proxy == own.address)
            #expect(try factory.proxyUse(store("http://store.test", proxy: proxy("off")))?.proxy == nil)
            #expect(try factory.proxyUse(store("http://near.test"))?.choice == .direct(why: "'near.test' of no_proxy"))
            #expect(try factory.proxyUse(store("http://127.0.0.1:9"))?.proxy == nil)
            let folder = DestinationSettings(name: "f", type: "folder", values: section(["path": .string("/tmp")]))
            #expect(try factory.proxyUse(folder) == nil)
        }
    }

    @Test func `a proxy that is down is said before anything is sent`() async throws {
        let gone = try ChaosProxy(to: 1)
        gone.close()
        try await withFactory(proxy("http://127.0.0.1:\(gone.port)")) { factory in
            let use = try #require(try factory.proxyUse(store("http://store.test")))
            let error = await #expect(throws: DeliveryError.self) { try await use.connect() }
            #expect(error?.reason.contains("the proxy http://127.0.0.1:\(gone.port) does not answer") == true)
        }
    }

    @Test func `a destination's probe and a notice go through the proxy`() async throws {
        let origin = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("200 OK", headers: "Connection: close\r\n", "{}")
        }
        let proxy = try ForwardProxy(to: origin.port)
        try await withFactory(self.proxy(proxy.address)) { factory in
            let settings = NotifySettings(
                name: "ops", receiver: .webhook(Secret("http://hooks.test/x")), secret: nil, timeout: .seconds(20),
                allowsHTTP: true)
            let webhook = try #require(try factory.webhook(settings))
            #expect(await webhook.post(Array("{}".utf8), id: "msg_1", at: .now) == .taken)
            _ = try? await factory.make(store("http://store.test")).pipeline.probe()
        }
        #expect(proxy.asked.first?.line == "POST http://hooks.test/x HTTP/1.1")
        #expect(proxy.asked.count > 1 && proxy.asked.allSatisfy { $0.line.contains(" http://") })
    }
}
