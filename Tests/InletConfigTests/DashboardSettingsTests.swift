import InletConfig
import InletCore
import Testing

/// `dashboard:`.
struct DashboardSettingsTests {
    private static func text(_ dashboard: String) -> String {
        """
        destinations: { lib: { type: folder, path: /lib } }
        watch: [{ path: /srv/drop }]
        routes: [{ name: all, to: lib }]
        \(dashboard)
        """
    }

    @Test(arguments: ["", "dashboard:", "dashboard:\n  # listen: 127.0.0.1:8844"])
    func `without the section nothing listens`(_ dashboard: String) throws {
        #expect(try parse(Self.text(dashboard)).settings.dashboard == nil)
    }

    @Test func `all of it is read, and no secret is shown`() throws {
        let config = try parse(
            Self.text(
                """
                dashboard:
                  listen: 0.0.0.0:8844
                  token: canary-token
                  password: "canary passphrase"
                  read_only_token: canary-reader
                  hosts: [inlet.example, "nas.lan:8844"]
                  proxy: true
                """))
        let settings = try #require(config.settings.dashboard)
        #expect(settings.listen == ListenAddress(host: "0.0.0.0", port: 8844) && !settings.isOpen)
        #expect(settings.token?.reveal() == "canary-token" && settings.password?.reveal() == "canary passphrase")
        #expect(settings.readOnlyToken?.reveal() == "canary-reader")
        #expect(settings.hosts == ["inlet.example", "nas.lan:8844"] && settings.proxy)
        #expect(!"\(settings)".contains("canary"))
        #expect(!ConfigPrinter.show(config, types: standInTypes).contains("canary"))
    }

    @Test(arguments: [
        ("127.0.0.1:8844", true), ("localhost:80", true), ("[::1]:8844", true), ("127.9.9.9:1", true),
    ])
    func `on loopback nothing more is needed`(_ listen: String, _ isLoopback: Bool) throws {
        let settings = try parse(Self.text("dashboard: { listen: \"\(listen)\" }")).settings.dashboard
        #expect(
            settings?.listen.isLoopback == isLoopback && settings?.listen.text == listen && settings?.isOpen == true)
    }

    @Test(arguments: [
        ("listen: 8844", "is an address and a port; write an address and a port, as in 127.0.0.1:8844"),
        ("listen: \":8844\"", "127.0.0.1:8844 is for this machine only, 0.0.0.0:8844 for its networks"),
        ("listen: \"*:8844\"", "127.0.0.1:8844 is for this machine only"),
        ("listen: \"127.0.0.1:0\"", "a port from 1 to 65535"),
        ("listen: \"127.0.0.1:http\"", "a port from 1 to 65535"),
        ("listen: \"127.0.0.1:+80\"", "a port from 1 to 65535"),
        ("listen: \"::1:8844\"", "without brackets; write it as in [::1]:8844"),
        ("listen: \"[127.0.0.1]:8844\"", "no IPv6 address in its brackets"),
        ("listen: \"300.1.1.1:8844\"", "needs an address of this machine"),
        ("listen: \"http://127.0.0.1:8844\"", "without brackets"),
        ("listen: \"0.0.0.0:8844\"", "give a 'token' or a 'password', or listen at 127.0.0.1:8844"),
        ("listen: \"[::]:8844\"", "give a 'token' or a 'password'"),
        ("listen: \"nas.lan:8844\"", "give a 'token' or a 'password'"),
        ("listen: \"0.0.0.0:8844\", read_only_token: abcdefgh", "give a 'token' or a 'password'"),
        ("listen: \"0.0.0.0:8844\", password: canary1", "'password' has fewer than 8 characters"),
        ("listen: \"127.0.0.1:8844\", token: \"canary with spaces\"", "goes in a header"),
        ("listen: \"127.0.0.1:8844\", read_only_token: canary-reader", "everybody on this machine may do everything"),
        (
            "listen: \"127.0.0.1:8844\", token: canary-token, read_only_token: canary-token",
            "must differ from what may do everything"
        ),
        ("listen: \"127.0.0.1:8844\", hosts: [\"http://inlet.example/\"]", "is no name of a host"),
        ("listen: \"127.0.0.1:8844\", hosts: inlet.example", "'hosts' is for those who come from elsewhere"),
        ("listen: \"127.0.0.1:8844\", proxy: true", "'proxy' is for those who come from elsewhere"),
        ("token: canary-token", "required key 'listen' is missing"),
        ("listen: \"127.0.0.1:8844\", tokn: canary-token", "did you mean 'token'?"),
    ])
    func `what cannot be meant is refused with its remedy, and without its secrets`(_ keys: String, _ expected: String)
    {
        let errors = #expect(throws: ConfigErrors.self) { _ = try parse(Self.text("dashboard: { \(keys) }")) }
        #expect("\(errors as Any)".contains(expected), "\(errors as Any)")
        #expect(!"\(errors as Any)".contains("canary"), "\(errors as Any)")
    }
}
