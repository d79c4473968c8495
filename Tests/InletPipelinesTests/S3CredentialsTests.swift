import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Where the keys of an `s3` destination come from.
@Suite struct S3CredentialsTests {
    private static let file = """
        # made by hand
        [default]
        aws_access_key_id = AKDEFAULT
        aws_secret_access_key=sd/+=

        ; the camera's
        [camera]
        AWS_Access_Key_ID   =   AKCAMERA
        aws_secret_access_key = old
        aws_secret_access_key = sc
        aws_session_token = tc
        s3 =
          max_concurrent_requests = 20
          aws_access_key_id = nested
        [profile named]
        aws_access_key_id = AKNAMED
        aws_secret_access_key = sn
        [half]
        aws_access_key_id = AKHALF
        [ spaced ]
        aws_access_key_id = AKSPACED
        aws_secret_access_key = ss
        """

    @Test(
        arguments: [
            ("default", "AKDEFAULT", "sd/+=", nil), ("camera", "AKCAMERA", "sc", "tc"), ("named", "AKNAMED", "sn", nil),
            ("spaced", "AKSPACED", "ss", nil),
        ] as [(String, String, String, String?)], ["\n", "\r\n"])
    func `profiles are read as the AWS tools write them`(
        _ expected: (String, String, String, String?), _ lineEnd: String
    ) throws {
        let file = CredentialsFile(Self.file.replacing("\n", with: lineEnd))
        let credentials = try #require(file.credentials(expected.0))
        #expect(credentials.accessKey.reveal() == expected.1)
        #expect(credentials.secretKey.reveal() == expected.2)
        #expect(credentials.sessionToken?.reveal() == expected.3)
    }

    @Test func `half a profile and no profile are none`() {
        let file = CredentialsFile(Self.file)
        #expect(file.credentials("half") == nil)
        #expect(file.credentials("other") == nil)
        #expect(file.names == ["camera", "default", "half", "named", "spaced"])
        for text in ["", "=", "[", "[]", "a = b", "[x\na=b", "\u{0}\n[y]\n=\n= =", "[z]\naws_access_key_id"] {
            #expect(CredentialsFile(text).credentials("x") == nil)
        }
    }

    private static func source(
        _ values: [String: ConfigValue] = [:], environment: [String: String] = [:], home: FilePath? = nil
    ) throws -> CredentialsSource {
        try S3SettingsTests.settings(values, environment: environment, home: home, withKeys: false).credentials
    }

    private static let keys = ["AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "se", "AWS_SESSION_TOKEN": "te"]

    @Test func `the configuration goes before the environment, and a named profile too`() throws {
        let home = try TemporaryDirectory()
        try home.write(Self.file.utf8, to: ".aws/credentials")
        let fixed: [String: ConfigValue] = [
            "access_key": .secret(Secret("AKCONF")), "secret_key": .secret(Secret("s")),
        ]
        func key(_ values: [String: ConfigValue], _ environment: [String: String]) throws -> String {
            let source = try Self.source(values, environment: environment, home: home.path)
            return try source.read().accessKey.reveal()
        }
        #expect(try key(fixed, Self.keys) == "AKCONF")
        #expect(try key(["profile": .string("camera")], Self.keys) == "AKCAMERA")
        #expect(try key([:], Self.keys) == "AKENV")
        #expect(try key([:], [:]) == "AKDEFAULT")
        #expect(try key([:], ["AWS_PROFILE": "named"]) == "AKNAMED")
        let other = try home.write("[default]\naws_access_key_id=AKOTHER\naws_secret_access_key=s".utf8, to: "other")
        #expect(try key([:], ["AWS_SHARED_CREDENTIALS_FILE": other.string]) == "AKOTHER")
        #expect(try key(["credentials_file": .string(other.string)], [:]) == "AKOTHER")
    }

    @Test func `keys of the environment bring their session token`() throws {
        #expect(try Self.source(environment: Self.keys).read().sessionToken?.reveal() == "te")
        var without = Self.keys
        without["AWS_SESSION_TOKEN"] = ""
        #expect(try Self.source(environment: without).read().sessionToken == nil)
    }

    @Test func `without any keys the configuration is at fault`() {
        let fault = #expect(throws: SettingFault.self) { try S3SettingsTests.settings(withKeys: false) }
        #expect(fault?.key == "access_key")
        #expect(fault?.message.contains("AWS_ACCESS_KEY_ID") == true)
    }

    @Test func `a missing file or profile is a matter of credentials, and says which`() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path.appending("credentials")
        let source = CredentialsSource.file(file, profile: "gone")
        let missing = #expect(throws: DeliveryError.self) { try source.read() }
        #expect(missing?.verdict == .credentials)
        try directory.write(Self.file.utf8, to: "credentials")
        let absent = #expect(throws: DeliveryError.self) { try source.read() }
        #expect(absent?.verdict == .credentials)
        #expect(absent?.reason.contains("'gone'") == true)
        #expect(absent?.reason.contains("camera") == true)
    }

    @Test func `keys that were refused are read again from their file`() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("[default]\naws_access_key_id=A1\naws_secret_access_key=s".utf8, to: "c")
        let keyring = Keyring(.file(file, profile: "default"))
        func accessKey(_ second: Int64) throws -> String {
            let time = WallTime(milliseconds: 1_795_240_800_000 + second * 1000)
            return try keyring.signer(at: time, region: "auto").credentials.accessKey.reveal()
        }
        #expect(try accessKey(0) == "A1")
        try directory.write("[default]\naws_access_key_id=A2\naws_secret_access_key=s".utf8, to: "c")
        #expect(try accessKey(1) == "A1")
        keyring.forget()
        #expect(try accessKey(2) == "A2")
    }
}
