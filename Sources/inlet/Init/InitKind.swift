import InletCore
import InletPipelines

/// What `inlet init` knows of a destination's type: what it asks, and what it writes for files that go there.
struct InitKind: Sendable {
    /// One key of the destination that is asked for.
    struct Question: Sendable {
        enum Kind: Sendable {
            case text
            case path
            /// With the environment variable that is proposed.
            case secret(variable: String)
        }

        /// As in the configuration.
        let key: String
        let words: String
        let kind: Kind
        /// A value that the reader takes, for checks of the others while this is not known yet.
        let example: String
        let isRequired: Bool

        init(_ key: String, _ words: String, _ kind: Kind = .text, example: String = "x", required: Bool = true) {
            self.key = key
            self.words = words
            self.kind = kind
            self.example = example
            isRequired = required
        }

        /// How it is given on the command line.
        var flag: String {
            switch kind {
            case .secret: "--env \(key)=VARIABLE"
            case .text, .path: "--" + key.replacing("_", with: "-")
            }
        }
    }

    /// The word after `type:`.
    let type: String
    /// What its destination is called.
    let name: String
    let questions: [Question]
    /// Keys of the destination that one may want next, as lines of YAML without their `#`.
    var hints: [String] = []
    /// Lines of the route, without its name, `to` and what becomes of the file.
    var route: [String] = []
    /// Whether its files are stored elsewhere first.
    var needsStorage = false

    var summary: String { PipelineFactory.types.first { $0.name == type }?.summary ?? type }

    /// VOPI's two ways to log in, of which a configuration has one.
    func isLogin(_ key: String) -> Bool { type == "vopi" && ["refresh_token_file", "api_key"].contains(key) }

    /// Whether the other way to log in was chosen already.
    func loginIsKnown(_ values: [String: InitAnswers.Value], _ key: String) -> Bool {
        isLogin(key) && values.keys.contains(where: isLogin)
    }

    /// Whether no other way is left.
    func isLastLogin(_ key: String) -> Bool { type == "vopi" && key == "api_key" }

    /// AWS is found by its region, another store by its address: whether the address was left out.
    func isLastPlace(_ key: String, _ values: [String: InitAnswers.Value]) -> Bool {
        type == "s3" && key == "region" && values["endpoint"] == nil
    }

    /// How the command line gives a key of some type.
    static func flag(of key: String) -> String {
        (all.flatMap(\.questions) + [publicURL]).first { $0.key == key }?.flag ?? "--env \(key)=VARIABLE"
    }

    static let all = [r2, s3, gigHive, vopi, roboscope, folder]
    static func named(_ type: String) -> InitKind? { all.first { $0.type == type } }

    /// Those that hold the files of others.
    static let storages = ["r2", "s3"]

    /// Asked only of a destination that stores files for another one.
    static let publicURL = Question(
        "public_url", "Where can its objects be read without a login (their public address)?",
        example: "https://cdn.example.com")

    private static let mirrored = ["key: \"{dir}/{name}\"              # the same folders there as here"]

    static let r2 = InitKind(
        type: "r2", name: "r2",
        questions: [
            Question("api", "Address of the Spiral Storage API?", example: "https://storage.example.com"),
            Question("api_key", "Its API key", .secret(variable: "SPIRAL_KEY")),
        ],
        hints: [
            "public_url: \"https://cdn.example.com\"   # where stored objects can be read", "parallel_parts: 4",
            "bandwidth: 20MiB/s",
        ], route: mirrored)

    static let s3 = InitKind(
        type: "s3", name: "bucket",
        questions: [
            Question(
                "endpoint", "Address of the store (empty: AWS)?", example: "https://s3.example.com", required: false),
            Question("bucket", "Name of the bucket?", example: "media"),
            Question(
                "region", "Its region (empty: as its address says; AWS needs one)?", example: "auto", required: false),
            Question("access_key", "The access key", .secret(variable: "S3_ACCESS_KEY")),
            Question("secret_key", "The secret key", .secret(variable: "S3_SECRET_KEY")),
        ],
        hints: [
            "storage_class: STANDARD_IA", "if_exists: overwrite         # overwrite | skip-same | version | fail",
            "bandwidth: 20MiB/s",
        ], route: mirrored)

    static let gigHive = InitKind(
        type: "gighive", name: "stage",
        questions: [
            Question("url", "Address of the GigHive server?", example: "https://gighive.example"),
            Question("user", "Its user?", example: "uploader"),
            Question("password", "That user's password", .secret(variable: "GIGHIVE_PASSWORD")),
        ],
        hints: [
            "transport: auto              # auto | multipart | tus",
            "pin: \"sha256//…\"             # for a self-signed certificate: 'inlet check' prints the server's",
        ],
        route: [
            "match: { extensions: [mp4, mov, mp3, wav, flac] }", "key: \"{dir}/{name}\"",
            "with:                          # label is the file's name and event_date its day, unless given",
            "  org_name: \"{folder[1]}\"      # the first folder below the watched one", "  event_type: band",
        ])

    static let vopi = InitKind(
        type: "vopi", name: "products",
        questions: [
            Question("url", "Address of the VOPI server?", example: "https://vopi.example"),
            Question(
                "refresh_token_file", "File with the refresh token of a login (empty: an API key)?", .path,
                example: "vopi.token", required: false),
            Question("api_key", "Its API key", .secret(variable: "VOPI_KEY"), required: false),
            Question("results", "Folder for what it makes of the videos?", .path, example: "/nonexistent/results"),
        ],
        hints: [
            "job: { commercial_versions: [transparent] }   # of transparent, solid, real, creative",
            "                                              # a job costs 1 credit or more; more kinds may cost more",
        ],
        route: ["match: { extensions: [mp4, m4v, mov, webm] }", "validate: { max_size: 5GiB }"])

    static let roboscope = InitKind(
        type: "roboscope", name: "spaces",
        questions: [
            Question("url", "Address of the Roboscope API?", example: "https://roboscope.example/api/v1"),
            Question("token", "Its token", .secret(variable: "ROBOSCOPE_TOKEN"), required: false),
        ],
        route: [
            "match: { extensions: [glb, usdc, usdz, obj, ply] }", "key: \"models/{dir}/{name}\"",
            "sidecars: { extensions: [png, jpg], wait: 30s }   # previews, which go with their models",
        ], needsStorage: true)

    static let folder = InitKind(
        type: "folder", name: "library",
        questions: [Question("path", "Which folder shall they go to?", .path, example: "/nonexistent/library")],
        hints: ["min_free: 10GiB              # space that must stay free"], route: mirrored)
}
