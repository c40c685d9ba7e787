import cProfile, pstats, io, pytest
from django.core.management import call_command
from django.db import connection
from tests.agent import exports
@pytest.mark.django_db(transaction=True)
def test_p(alice, tmp_path):
    file = exports.write_zip(tmp_path/"e.zip", [exports.chatgpt_conversation(n) for n in range(300)])
    n={"q":0}
    import collections; c=collections.Counter()
    def w(execute, sql, params, many, context):
        c[sql[:90]]+=1
        return execute(sql, params, many, context)
    pr=cProfile.Profile(); pr.enable()
    with connection.execute_wrapper(w):
        call_command("import_conversations", str(file), user="alice", stdout=io.StringIO())
    pr.disable()
    s=io.StringIO(); st=pstats.Stats(pr,stream=s).sort_stats("cumulative"); st.print_stats(45); st.sort_stats("tottime").print_stats(25)
    print(s.getvalue())
    for k,v in c.most_common(45): print(v,k)
    print(sum(c.values()))
    pr=cProfile.Profile(); pr.enable()
    call_command("import_conversations", str(file), user="alice", stdout=io.StringIO())
    pr.disable()
    s=io.StringIO(); pstats.Stats(pr,stream=s).sort_stats("cumulative").print_stats(15); print(s.getvalue())
    assert 0
