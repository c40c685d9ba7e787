"""Addresses of a person's own pages."""

from django.urls import path

from accounts import views

urlpatterns = [
    path("", views.account, name="account"),
    path("password/", views.OwnPasswordView.as_view(), name="account-password"),
    path("export/", views.export, name="account-export"),
    path("erase/", views.erase, name="account-erase"),
    path("erased/", views.erased, name="account-erased"),
]
